/** The picture of a chart, in the width that it has. It is drawn for eyes only: the table says the same. */
import { type RefObject, useLayoutEffect, useRef, useState } from "react"
import { countOf } from "../parts/Format.ts"
import type { ChartData, Series } from "./ChartData.ts"
import { classOf, dashOf } from "./Marks.tsx"
import { labelledOf, ticksOf } from "./Scale.ts"

const height = 190
const edge = { top: 8, right: 8, bottom: 24 }
const labelWidth = 72

/** Where values and places are. */
interface Frame {
  readonly left: number
  readonly width: number
  /** The width of one place. */
  readonly band: number
  readonly x: (place: number) => number
  readonly y: (value: number) => number
}

interface Props {
  readonly chart: ChartData
}

export const Drawing = ({ chart }: Props) => {
  const box = useRef<HTMLDivElement>(null)
  const width = useWidth(box)
  const { kind, places, series } = chart
  const ticks = ticksOf(largestIn(chart))
  const frame = frameOf(width, places.length, ticks)
  return (
    <div ref={box} className="drawing">
      <svg width={width} height={height} aria-hidden="true">
        <Axes frame={frame} ticks={ticks} places={places} />
        {kind === "lines" ? (
          series.map((each, index) => <Line key={each.name} frame={frame} series={each} index={index} />)
        ) : (
          <Bars frame={frame} chart={chart} />
        )}
        {places.map((place, index) => (
          <rect
            key={place}
            className="place"
            x={frame.x(index) - frame.band / 2}
            y={edge.top}
            width={frame.band}
            height={height - edge.top - edge.bottom}
          >
            <title>{readOut(chart, index)}</title>
          </rect>
        ))}
      </svg>
    </div>
  )
}

const useWidth = (box: RefObject<HTMLElement | null>): number => {
  const [width, setWidth] = useState(480)
  useLayoutEffect(() => {
    const element = box.current!
    setWidth(element.clientWidth)
    const observer = new ResizeObserver(() => setWidth(element.clientWidth))
    observer.observe(element)
    return () => observer.disconnect()
  }, [box])
  return width
}

const largestIn = ({ kind, places, series }: ChartData): number => {
  const ofPlace = (place: number) => series.map(({ values }) => values[place] ?? 0)
  const heights = places.map((_, place) =>
    kind === "parts" ? ofPlace(place).reduce((sum, value) => sum + value, 0) : Math.max(...ofPlace(place))
  )
  return Math.max(0, ...heights)
}

const frameOf = (total: number, places: number, ticks: ReadonlyArray<number>): Frame => {
  const largest = ticks.at(-1)!
  const left = 12 + 7 * countOf(largest).length
  const width = Math.max(1, total - left - edge.right)
  const band = width / places
  const depth = height - edge.top - edge.bottom
  return {
    left,
    width,
    band,
    x: (place) => left + band * (place + 0.5),
    y: (value) => edge.top + depth * (1 - value / largest)
  }
}

const readOut = ({ places, series }: ChartData, place: number): string =>
  [
    places[place],
    ...series.map(({ name, values }) => `${name}: ${values[place] === undefined ? "–" : countOf(values[place])}`)
  ].join("\n")

const Axes = (props: {
  readonly frame: Frame
  readonly ticks: ReadonlyArray<number>
  readonly places: ReadonlyArray<string>
}) => {
  const { frame, places, ticks } = props
  return (
    <>
      {ticks.map((tick) => (
        <g key={tick}>
          <path className="rule" d={`M${frame.left} ${frame.y(tick)}h${frame.width}`} />
          <text x={frame.left - 6} y={frame.y(tick) + 4} textAnchor="end">
            {countOf(tick)}
          </text>
        </g>
      ))}
      {labelledOf(places.length, Math.floor(frame.width / labelWidth)).map((place, index, labelled) => {
        const startOf = (of: number) => frame.left + frame.band * of
        const end = frame.left + frame.width
        const isLate = startOf(place) + labelWidth > end
        // It would lie over the label before it.
        if (isLate && index > 0 && startOf(labelled[index - 1]!) + 2 * labelWidth > end) return null
        return (
          <text key={place} x={isLate ? end : startOf(place)} y={height - 6} textAnchor={isLate ? "end" : "start"}>
            {places[place]}
          </text>
        )
      })}
    </>
  )
}

/** Bars from zero up, and none where nothing was counted: a zero is a bar as thin as the axis. */
const Bars = ({ chart: { kind, places, series }, frame }: Props & { readonly frame: Frame }) => {
  const gap = frame.band > 6 ? Math.max(frame.band * 0.3, frame.band - 28) : 0
  const isStack = kind === "parts"
  const width = Math.max(0.5, (frame.band - gap) / (isStack ? 1 : series.length))
  return places.map((place, index) => {
    const start = frame.x(index) - frame.band / 2 + gap / 2
    let below = 0
    return (
      <g key={place}>
        {series.map(({ name, values }, number) => {
          const value = values[index] ?? 0
          const from = isStack ? below : 0
          below += value
          return values[index] === undefined || (isStack && value === 0) ? null : (
            <rect
              key={name}
              className={classOf(number)}
              x={isStack ? start : start + number * width}
              y={frame.y(from + value)}
              width={width}
              height={Math.max(1, frame.y(from) - frame.y(from + value) - (isStack && from > 0 ? 1.5 : 0))}
              rx={Math.min(2, width / 4)}
              fill="currentColor"
            />
          )
        })}
      </g>
    )
  })
}

/** A line with a gap where nothing was counted, and a dot where it has no neighbour. */
const Line = (props: { readonly frame: Frame; readonly series: Series; readonly index: number }) => {
  const { frame, index, series } = props
  const { values } = series
  const isCounted = (place: number) => values[place] !== undefined
  const steps = values.map((value, place) =>
    value === undefined ? "" : `${isCounted(place - 1) ? "L" : "M"}${frame.x(place)} ${frame.y(value)}`
  )
  return (
    <g className={classOf(index)} stroke="currentColor" strokeWidth="2" strokeLinejoin="round" fill="none">
      {index === 0 && <path className="area" d={areaOf(frame, values)} />}
      <path d={steps.join("")} strokeDasharray={dashOf(index)} />
      {values.map((value, place) =>
        value === undefined || isCounted(place - 1) || isCounted(place + 1) ? null : (
          // biome-ignore lint/suspicious/noArrayIndexKey: a place has no other name.
          <circle key={place} cx={frame.x(place)} cy={frame.y(value)} r="2" />
        )
      )}
    </g>
  )
}

/** The area under a line, for each part without a gap. */
const areaOf = (frame: Frame, values: Series["values"]): string =>
  values
    .map((value, place) => {
      const next = values[place + 1]
      if (value === undefined || next === undefined) return ""
      const [from, to] = [frame.x(place), frame.x(place + 1)]
      return `M${from} ${frame.y(0)}V${frame.y(value)}L${to} ${frame.y(next)}V${frame.y(0)}Z`
    })
    .join("")
