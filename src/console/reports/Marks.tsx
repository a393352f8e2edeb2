/** How the series of a chart are told apart: each has a colour, and a pattern or a dash of its own. */

const styles = [
  { pattern: "", dash: "" },
  { pattern: "M-1 7L7 -1", dash: "7 4" },
  { pattern: "M1 3H5", dash: "2 3" },
  { pattern: "M-1 -1L7 7", dash: "10 3 2 3" },
  { pattern: "M3 -1V7", dash: "5 2 1 2" },
  { pattern: "M-1 7L7 -1M-1 -1L7 7", dash: "1 4" }
] as const

const styleOf = (index: number) => styles[index % styles.length]!
export const classOf = (index: number): string => `series-${index % styles.length}`
export const dashOf = (index: number): string => styleOf(index).dash

/** The patterns of so many series; `id` makes their names those of one chart. */
export const Patterns = ({ count, id }: { readonly count: number; readonly id: string }) => (
  <defs>
    {styles.slice(0, count).map(({ pattern }, index) => (
      <pattern
        key={pattern}
        id={`${id}-${index}`}
        className={classOf(index)}
        width="6"
        height="6"
        patternUnits="userSpaceOnUse"
      >
        {pattern === "" ? (
          <rect width="6" height="6" fill="currentColor" />
        ) : (
          <>
            <rect width="6" height="6" className="under" />
            <path d={pattern} stroke="currentColor" strokeWidth="2.5" />
          </>
        )}
      </pattern>
    ))}
  </defs>
)

export const fillOf = (id: string, index: number): string => `url(#${id}-${index % styles.length})`

/** The sign of a series in the legend; the chart with this id has the patterns. */
export const Swatch = (props: { readonly id: string; readonly index: number; readonly isLine: boolean }) => (
  <svg className={classOf(props.index)} width="24" height="14" aria-hidden="true">
    {props.isLine ? (
      <path d="M0 7H24" stroke="currentColor" strokeWidth="2.5" strokeDasharray={dashOf(props.index)} />
    ) : (
      <rect x="1" y="1" width="22" height="12" stroke="currentColor" fill={fillOf(props.id, props.index)} />
    )}
  </svg>
)
