/** How much of a limit is used, as a bar beside the words that say it. */
export const Meter = ({ of, used }: { readonly used: number; readonly of: number }) => {
  const share = of <= 0 ? 0 : Math.min(1, used / of)
  const level = share >= 1 ? "full" : share >= 0.8 ? "high" : "low"
  return (
    <svg className={`meter ${level}`} width="100%" height="6" aria-hidden="true">
      <rect className="track" width="100%" height="6" rx="3" />
      {share > 0 && <rect className="fill" width={`${Math.max(1.5, share * 100)}%`} height="6" rx="3" />}
    </svg>
  )
}

/** The run of a figure, without axes, with a gap where nothing was counted. */
export const Sparkline = ({ values }: { readonly values: ReadonlyArray<number | undefined> }) => {
  const known = values.filter((value) => value !== undefined)
  if (known.length < 2) return <svg className="spark" aria-hidden="true" />
  const [low, high] = [Math.min(...known), Math.max(...known)]
  const x = (place: number) => (place / (values.length - 1)) * 100
  const y = (value: number) => (high === low ? 16 : 30 - ((value - low) / (high - low)) * 28)
  const steps = values.map((value, place) => {
    const next = values[place + 1]
    return value === undefined || next === undefined ? "" : `${x(place)} ${y(value)}L${x(place + 1)} ${y(next)}`
  })
  const pathOf = (path: (step: string, place: number) => string) =>
    steps.map((step, place) => (step === "" ? "" : path(step, place))).join("")
  return (
    <svg className="spark" viewBox="0 0 100 32" preserveAspectRatio="none" aria-hidden="true">
      <path className="spark-area" d={pathOf((step, place) => `M${x(place)} 32L${step}V32Z`)} />
      <path className="spark-line" d={pathOf((step, place) => `${steps[place - 1] ? "L" : "M"}${step}`)} />
    </svg>
  )
}
