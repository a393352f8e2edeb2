/** The pages that the service shows without the documentation site: a reference on one page, and the page at `/`. */
import type { OpenApi } from "effect/http-api"
import { statuses } from "../../../contract/api/ErrorCode.ts"
import { errorCatalogue } from "../texts/ErrorCatalogue.ts"
import { deliveriesIntroduction, referenceDeliveries } from "./Deliveries.ts"
import { escaped, prose, table } from "./Html.ts"
import { type Group, type Part, type Places, referenceGroups, referenceSchemas } from "./Reference.ts"

type Spec = OpenApi.OpenAPISpec

const within: Places = { schema: (name) => `#${name}`, code: (code) => `#${code}` }

/** All addresses are relative, because the public address may have a path. */
const page = (title: string, top: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" type="image/svg+xml" href="${top}favicon.svg">
<link rel="stylesheet" href="${top}docs/reference.css">
</head>
<body class="light">
${body}
</body>
</html>
`

export const referencePage = (spec: Spec): string => {
  const groups = referenceGroups(spec, within)
  return page(
    "API reference",
    "../",
    `<h1>API reference</h1>
<p>${links("../")}</p>
<p>The documentation with guides and a search is built by <code>npm run docs</code>; the service shows it here after a restart. The image and the package contain it.</p>
<nav><ul>${groups.map(({ name, operations }) => `<li><a href="#${name}">${name}</a>: ${operations.map(({ id }) => `<a href="#${id}">${id}</a>`).join(", ")}</li>`).join("")}<li><a href="#deliveries">Webhook deliveries</a></li><li><a href="#errors">Error codes</a></li><li><a href="#schemas">Schemas</a></li></ul></nav>
<main>${groups.map(groupHtml).join("\n")}
<h2 id="deliveries">Webhook deliveries</h2><p>${prose(deliveriesIntroduction())}</p>
${referenceDeliveries().map(deliveryHtml).join("\n")}
<h2 id="errors">Error codes</h2>
${errorsTable}
<h2 id="schemas">Schemas</h2>
${referenceSchemas(spec, within)
  .map(({ html, id }) => `<h3 id="${id}">${id}</h3>${html}`)
  .join("\n")}</main>`
  )
}

const groupHtml = ({ description, name, operations }: Group): string =>
  `<h2 id="${name}">${name}</h2><p>${prose(description)}</p>${operations
    .map(({ html, id, title }) => `<section id="${id}"><h3>${escaped(title)} <code>${id}</code></h3>${html}</section>`)
    .join("\n")}`

const deliveryHtml = ({ html, id, title }: Part): string =>
  `<section id="${id}"><h3><code>${title}</code></h3>${html}</section>`

const errorsTable = `<div class="part">${table(
  ["Code", "Status", "When", "What to do"],
  Object.entries(errorCatalogue).map(([code, { remedy, when }]) => [
    `<code id="${code}">${code}</code>`,
    String(statuses[code as keyof typeof statuses]),
    prose(when),
    prose(remedy)
  ])
)}</div>`

const links = (top: string): string =>
  [
    ["openapi.yaml", "OpenAPI document"],
    ["openapi.json", "the same as JSON"],
    ["llms.txt", "for language models"]
  ]
    .map(([path, name]) => `<a href="${top}${path}">${name}</a>`)
    .join(" · ")

export const startPage = (hasConsole: boolean): string =>
  page(
    "Licensing service",
    "",
    `<h1>Licensing service</h1>
<p>This service issues software licenses and serves the applications that use them.</p>
<ul>${hasConsole ? '<li><a href="console">Console</a>: licenses, customers and products in a browser</li>' : ""}
<li><a href="docs/">Documentation and API reference</a></li></ul>
<p>${links("")}</p>`
  )
