"""Links between words, and how those of two directions become one set. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Links = frozenset[tuple[int, int]]  # (source word, target word), from 0


def turned(links: Links) -> Links:
    """Source for target."""
    return frozenset((target, source) for source, target in links)


def intersection(forward: Links, backward: Links) -> Links:
    """What both say: few links, mostly right."""
    return forward & backward


def union(forward: Links, backward: Links) -> Links:
    """What either says: many links."""
    return forward | backward


def grow_diagonal(forward: Links, backward: Links) -> Links:
    """From the intersection on, again and again, points of the union that touch an accepted one on a side or a corner,
    where the row or the column has no link yet (Koehn et al. 2003, section 4.5; Moses' symal, "grow-diag")."""
    accepted, either = set(forward & backward), forward | backward
    sources, targets = ({link[side] for link in accepted} for side in (0, 1))
    grown = True
    while grown:
        grown = False
        for source, target in sorted(accepted):
            for point in sorted(_neighbours(source, target) & either - accepted):
                if point[0] not in sources or point[1] not in targets:
                    accepted.add(point)
                    sources.add(point[0])
                    targets.add(point[1])
                    grown = True
    return frozenset(accepted)


def grow_diagonal_final(forward: Links, backward: Links) -> Links:
    """grow_diagonal(), then links of the forward, then of the backward direction, where either word has no link yet
    (Moses' "grow-diag-final")."""
    return _final(grow_diagonal(forward, backward), (forward, backward), both=False)


def grow_diagonal_final_and(forward: Links, backward: Links) -> Links:
    """The same, but only where neither word has a link yet (Moses' "grow-diag-final-and")."""
    return _final(grow_diagonal(forward, backward), (forward, backward), both=True)


def _final(grown: Links, directions: tuple[Links, Links], *, both: bool) -> Links:
    accepted = set(grown)
    sources, targets = ({link[side] for link in accepted} for side in (0, 1))
    for links in directions:
        for source, target in sorted(links):
            free = source not in sources, target not in targets
            if all(free) if both else any(free):
                accepted.add((source, target))
                sources.add(source)
                targets.add(target)
    return frozenset(accepted)


def _neighbours(source: int, target: int) -> set[tuple[int, int]]:
    return {(source + i, target + j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j}


SYMMETRISATIONS: Mapping[str, Callable[[Links, Links], Links]] = {
    "intersection": intersection,
    "union": union,
    "grow-diag": grow_diagonal,
    "grow-diag-final": grow_diagonal_final,
    "grow-diag-final-and": grow_diagonal_final_and,
}
