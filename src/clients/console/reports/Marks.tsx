/**
 * How the series of a chart differ: by colours that also differ in lightness, by the shape of their sign in the legend, and
 * lines by their dash. Parts of a bar stand in the order of the legend, with a gap between them.
 */

const styles = [
  { dash: "", shape: "M2 2h8v8h-8z" },
  { dash: "6 4", shape: "M6 1l5 9h-10z" },
  { dash: "2 3", shape: "M6 1.5a4.5 4.5 0 1 0 .01 0z" },
  { dash: "10 3 2 3", shape: "M6 0.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z" },
  { dash: "5 2 1 2", shape: "M1 4h10v4h-10z" },
  { dash: "1 4", shape: "M4 1h4v10h-4z" }
] as const

const styleOf = (index: number) => styles[index % styles.length]!
export const classOf = (index: number): string => `series-${index % styles.length}`
export const dashOf = (index: number): string => styleOf(index).dash

/** The sign of a series in the legend. */
export const Swatch = (props: { readonly index: number; readonly isLine: boolean }) => (
  <svg className={classOf(props.index)} width={props.isLine ? 20 : 12} height="12" aria-hidden="true">
    {props.isLine ? (
      <path d="M0 6H20" stroke="currentColor" strokeWidth="2" strokeDasharray={dashOf(props.index)} />
    ) : (
      <path d={styleOf(props.index).shape} fill="currentColor" />
    )}
  </svg>
)
