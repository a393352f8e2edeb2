/** The axes of a chart. */

/** Ticks from zero, at round numbers, the last at or above the largest value. Counts have no ticks between whole numbers. */
export const ticksOf = (largest: number): ReadonlyArray<number> => {
  const rough = Math.max(largest, 1) / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough)!)
  return Array.from({ length: Math.max(1, Math.ceil(largest / step)) + 1 }, (_, index) => index * step)
}

/** Which of so many places have a label, if only so many labels have room: evenly spaced, the first one among them. */
export const labelledOf = (places: number, labelsMax: number): ReadonlyArray<number> => {
  const step = Math.max(1, Math.ceil(places / Math.max(1, labelsMax)))
  return Array.from({ length: Math.ceil(places / step) }, (_, index) => index * step)
}
