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

/** The run of a figure, without axes. */
export const Sparkline = ({ values }: { readonly values: ReadonlyArray<number | undefined> }) => {
  const known = values.filter((value) => value !== undefined)
  if (known.length < 2) return <svg className="spark" aria-hidden="true" />
  const [low, high] = [Math.min(...known), Math.max(...known)]
  const x = (place: number) => (place / (known.length - 1)) * 100
  const y = (value: number) => (high === low ? 16 : 30 - ((value - low) / (high - low)) * 28)
  const line = known.map((value, place) => `${place === 0 ? "M" : "L"}${x(place)} ${y(value)}`).join("")
  return (
    <svg className="spark" viewBox="0 0 100 32" preserveAspectRatio="none" aria-hidden="true">
      <path className="spark-area" d={`${line}V32H0Z`} />
      <path className="spark-line" d={line} />
    </svg>
  )
}
