// Numbers as the page writes them, with the minus sign of print.
const minus = (text) => text.replace("-", "−");

// With this many decimals; nothing known: a dash.
export const formatFixed = (value, digits) => (value === null ? "–" : minus(value.toFixed(digits)));

// With this many digits that count, and no zeros behind them.
export const formatSignificant = (value, digits) =>
  formatExponent(String(Number(value.toPrecision(digits))));

// 2.9e-7 as 2.9·10⁻⁷.
export const formatExponent = (text) =>
  minus(text.replace(/e\+?(-?\d+)/, (_, power) => `·10${[...power].map(raised).join("")}`));
const raised = (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit] ?? "⁻";

// A probability: whole percents from ten on, one decimal below, one digit that counts below a tenth of a percent.
export const formatPercent = (p) =>
  p >= 0.0995
    ? `${(100 * p).toFixed(0)}%`
    : p >= 0.00095
      ? `${(100 * p).toFixed(1)}%`
      : p >= 1e-6
        ? `${(100 * p).toPrecision(1)}%`
        : "≈ 0%";
