/**
 * A chart with the table behind it: screen readers read the table, and a button shows it to everybody. Parts differ by
 * lightness, place and sign as well as by colour.
 */
import { useId, useState } from "react"
import { countOf } from "../parts/Format.ts"
import { Table } from "../parts/Show.tsx"
import type { ChartData } from "./ChartData.ts"
import { Drawing } from "./Drawing.tsx"
import { Swatch } from "./Marks.tsx"

export const Chart = ({ chart }: { readonly chart: ChartData }) => {
  const id = useId()
  const [asTable, setAsTable] = useState(false)
  const { placeName, places, series, title, told } = chart
  const isEmpty = series.every(({ values }) => values.every((value) => value === undefined || value === 0))
  const isUncounted = series.length > 0 && series.every(({ values }) => values.every((value) => value === undefined))
  return (
    <figure className="chart" aria-labelledby={id}>
      <figcaption className="row spread">
        <h3 id={id}>
          {title}
          <small>{told}</small>
        </h3>
        {!isEmpty && (
          <button type="button" className="quiet small" onClick={() => setAsTable(!asTable)} aria-describedby={id}>
            {asTable ? "Chart" : "Table"}
          </button>
        )}
      </figcaption>
      {isEmpty ? (
        <p className="empty">{isUncounted ? "Not counted yet in this period." : "Nothing in this period."}</p>
      ) : (
        <>
          {!asTable && <Picture chart={chart} />}
          <div className={asTable ? "behind" : "hidden"}>
            {asTable ? (
              <Table
                caption={title}
                rows={[...places.keys()].reverse()}
                keyOf={String}
                empty=""
                columns={[
                  { title: placeName, show: (place) => places[place] },
                  ...series.map(({ name, values }) => ({
                    title: name,
                    number: true as const,
                    show: (place: number) => shown(values[place])
                  }))
                ]}
              />
            ) : (
              <Spoken chart={chart} />
            )}
          </div>
        </>
      )}
    </figure>
  )
}

const shown = (value: number | undefined) => (value === undefined ? "–" : countOf(value))

const Picture = ({ chart }: { readonly chart: ChartData }) => (
  <div aria-hidden="true">
    <Drawing chart={chart} />
    {chart.series.length > 1 && (
      <ul className="legend">
        {chart.series.map(({ name }, index) => (
          <li key={name}>
            <Swatch index={index} isLine={chart.kind === "lines"} /> {name}
          </li>
        ))}
      </ul>
    )}
  </div>
)

/** The table for screen readers, while others see the picture. */
const Spoken = ({ chart: { placeName, places, series, title } }: { readonly chart: ChartData }) => (
  <table>
    <caption>{title}</caption>
    <thead>
      <tr>
        <th scope="col">{placeName}</th>
        {series.map(({ name }) => (
          <th key={name} scope="col">
            {name}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {places.map((place, index) => (
        <tr key={place}>
          <th scope="row">{place}</th>
          {series.map(({ name, values }) => (
            <td key={name}>{shown(values[index])}</td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
)
