// A row of weights as sound: one short, quiet tone for each weight, from left to right. The larger the weight, the higher and
// louder its tone.

const LOWEST = 220, // hertz, of the weight 0
  OCTAVES = 3, // up to the weight 1
  TONE = 0.16, // seconds from one tone to the next
  LONGEST = 6, // seconds of a whole row, in which the tones of many weights are shorter
  FADE = 0.2, // share of a tone in which it rises, and falls: without, it would click
  SOFT = 0.02, // gain of the weight 0
  LOUD = 0.12;

/**
 * Schedule the tones of a row.
 * @param {BaseAudioContext} context @param {AudioNode} output
 * @param {number[]} weights 0 to 1; NaN is silent
 * @returns {number} the time at which the last tone ends
 */
export function scheduleTones(context, output, weights) {
  const length = Math.min(TONE, LONGEST / weights.length),
    first = context.currentTime;
  weights.forEach((weight, i) => {
    if (Number.isNaN(weight)) return;
    const tone = context.createOscillator(),
      volume = context.createGain(),
      [start, end, fade] = [first + i * length, first + (i + 0.9) * length, FADE * length],
      loudness = SOFT + (LOUD - SOFT) * weight;
    tone.frequency.value = LOWEST * 2 ** (OCTAVES * weight);
    volume.gain.setValueAtTime(0, start);
    volume.gain.linearRampToValueAtTime(loudness, start + fade);
    volume.gain.setValueAtTime(loudness, end - fade);
    volume.gain.linearRampToValueAtTime(0, end);
    tone.connect(volume);
    volume.connect(output);
    tone.start(start);
    tone.stop(end);
  });
  return first + weights.length * length;
}

/** Create a player of rows, which plays one at a time. */
export function createPlayer() {
  /** @type {AudioContext | null} */
  let context = null;
  /** @type {GainNode | null} of the row that plays */
  let output = null;
  let end = 0;

  /** Stop. @returns {boolean} whether a row was playing */
  function stop() {
    const isPlaying = Boolean(output) && /** @type {AudioContext} */ (context).currentTime < end;
    output?.disconnect();
    output = null;
    return isPlaying;
  }

  /**
   * Play a row of weights in place of the one that plays.
   * @param {number[]} weights
   * @returns {boolean} whether the browser can play sound
   */
  function play(weights) {
    stop();
    if (!window.AudioContext) return false;
    context ??= new AudioContext();
    context.resume();
    output = context.createGain();
    output.connect(context.destination);
    end = scheduleTones(context, output, weights);
    return true;
  }

  return { play, stop };
}
