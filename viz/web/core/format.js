// Numbers as the page writes them, with the typographic minus sign.

/** @param {string} text */
const withMinus = (text) => text.replace("-", "−");

/** Format with a fixed number of decimals; null is a dash. @param {number | null} value @param {number} digits */
export const formatFixed = (value, digits) =>
  value === null ? "–" : withMinus(value.toFixed(digits));

/** Format with significant digits, without trailing zeros. @param {number} value @param {number} digits */
export const formatSignificant = (value, digits) =>
  formatExponent(String(Number(value.toPrecision(digits))));

/** Write an exponent as a power of ten: "2.9e-7" becomes "2.9·10⁻⁷". @param {string} text */
export const formatExponent = (text) =>
  withMinus(
    text.replace(/e\+?(-?\d+)/, (_, power) => `·10${[...power].map(superscript).join("")}`),
  );

/** @param {string} digit */
const superscript = (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)] ?? "⁻";

/**
 * Format a probability: whole percents from ten, one decimal below ten, one significant digit below 0.1 %.
 * @param {number} p
 */
export function formatPercent(p) {
  if (p < 1e-6) return "≈ 0%";
  if (p < 0.00095) return `${(100 * p).toPrecision(1)}%`;
  return `${(100 * p).toFixed(p < 0.0995 ? 1 : 0)}%`;
}
