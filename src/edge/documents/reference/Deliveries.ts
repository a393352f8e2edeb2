import { eventTypes } from "../../../ledger/events/EventType.ts"
import { eventCatalogue } from "../EventCatalogue.ts"
import { type Delivery, readExamples } from "../Examples.ts"
import { escaped, prose } from "./Html.ts"
import type { Part } from "./Reference.ts"

export const deliveriesIntroduction = (): string =>
  `What webhook endpoints receive: one POST for each event. The examples are recorded and verify with the secret \`${readExamples().deliveries.secret}\` over the body as JSON without spaces.`

export const referenceDeliveries = (): ReadonlyArray<Part> => {
  const { byType } = readExamples().deliveries
  return eventTypes.map((type) => ({
    id: idOf(type),
    title: type,
    html: `<div class="part"><p>${prose(eventCatalogue[type])}</p>${exampleHtml(byType[type])}</div>`
  }))
}

/** Some tools drop dots from the fragment of an address. */
const idOf = (type: string): string => `event-${type.replaceAll(/[._]/g, "-")}`

const exampleHtml = (delivery: Delivery | undefined): string => {
  if (delivery === undefined) return ""
  const headers = Object.entries(delivery.headers).map(([name, value]) => `${name}: ${value}`)
  const body = JSON.stringify(delivery.body, null, 2)
  return `<details><summary>Example</summary><pre><code>${escaped(headers.join("\n"))}</code></pre><pre><code>${escaped(body)}</code></pre></details>`
}
