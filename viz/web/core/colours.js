// Colours "#rrggbb" in order -> 256 steps [red, green, blue], for drawing on a canvas.
export function colourSteps(colours) {
  const parsed = colours.map((c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)));
  return Array.from({ length: 256 }, (_, step) => {
    const at = (step / 255) * (parsed.length - 1),
      low = Math.min(Math.floor(at), parsed.length - 2);
    return parsed[low].map((value, i) =>
      Math.round(value + (at - low) * (parsed[low + 1][i] - value)),
    );
  });
}
