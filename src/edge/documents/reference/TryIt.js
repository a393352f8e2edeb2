/**
 * The forms of the reference: each sends a request of its operation and shows the response. Credentials stay in this page's memory:
 * nothing stores them.
 */
// Behind a proxy the service may be published below a path.
const memory = { address: location.origin + (/^(.*)\/docs\//.exec(location.pathname)?.[1] ?? ""), token: "", key: "" }
const labels = { address: "Service", token: "API token", key: "License key" }

const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}

const field = (label, input) => element("label", {}, element("span", { textContent: label }), input)

const memoryField = (name) => {
  const input = element("input", {
    value: memory[name],
    type: name === "address" ? "url" : "password",
    autocomplete: "off",
    spellcheck: false
  })
  input.dataset.memory = name
  const made = field(labels[name], input)
  if (name === "address") made.append(element("small", { textContent: otherAddresses }))
  return made
}

/** The policy of a page that a service shows allows its own origin only. */
const otherAddresses =
  "Pages of a service send requests to that service only. Pages on another host send them to each service whose setting " +
  `LICENSING_CORS_ORIGINS has ${location.origin}.`

/** The inputs of one part of the request, by their names. */
const inputsOf = (names) =>
  new Map(names.map((name) => [name, element("input", { autocomplete: "off", spellcheck: false })]))
const fieldsOf = (inputs) => [...inputs].map(([name, input]) => field(name, input))
const filled = (inputs) => [...inputs].map(([name, { value }]) => [name, value]).filter(([, value]) => value !== "")

const formOf = (operation) => {
  const path = inputsOf([...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name))
  const [query, headers] = [inputsOf(operation.query), inputsOf(operation.headers)]
  const body =
    operation.body === undefined
      ? undefined
      : element("textarea", { value: JSON.stringify(operation.body, null, 2), rows: 8, spellcheck: false })
  const result = element("output")
  const form = element(
    "form",
    {},
    memoryField("address"),
    ...(operation.credential === "none" ? [] : [memoryField(operation.credential)]),
    ...fieldsOf(path),
    ...fieldsOf(query),
    ...fieldsOf(headers),
    ...(body === undefined ? [] : [field("Body", body)]),
    element("button", { textContent: `Send ${operation.method}` }),
    result
  )
  form.addEventListener("submit", (event) => {
    event.preventDefault()
    send(requestOf(operation, { path, query, headers, body }), result)
  })
  return form
}

const requestOf = ({ credential, method, path: template }, { body, headers, path, query }) => {
  const target = new URL(
    memory.address.replace(/\/$/, "") +
      template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(path.get(name).value))
  )
  for (const [name, value] of filled(query)) {
    // The filter by metadata is written key=value.
    const [key, ...rest] = value.split("=")
    if (name === "metadata") target.searchParams.set(`metadata[${key}]`, rest.join("="))
    else target.searchParams.set(name, value)
  }
  const authorization = { token: `Bearer ${memory.token}`, key: `License ${memory.key}` }[credential]
  return [
    target,
    {
      method,
      headers: {
        ...(authorization && { authorization }),
        ...(body && { "content-type": "application/json" }),
        ...Object.fromEntries(filled(headers))
      },
      ...(body && { body: body.value }),
      cache: "no-store",
      credentials: "omit"
    }
  ]
}

const shownHeaders = ["x-request-id", "retry-after", "ratelimit", "idempotency-replayed"]

const send = async (request, result) => {
  result.textContent = "Sending …"
  const started = performance.now()
  try {
    const response = await fetch(...request)
    const text = await response.text()
    const headers = shownHeaders.flatMap((name) =>
      response.headers.has(name) ? [`${name}: ${response.headers.get(name)}`] : []
    )
    const head = [
      `${response.status} ${response.statusText}, ${Math.round(performance.now() - started)} ms`,
      ...headers
    ]
    result.replaceChildren(element("pre", { textContent: [...head, "", indented(text)].join("\n") }))
  } catch (failure) {
    result.textContent = `No response: ${failure.message}. ${otherAddresses}`
  }
}

const indented = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text.slice(0, 20_000)
  }
}

const showForm = (details) => {
  if (!details.open || details.dataset?.operation === undefined || details.querySelector("form") !== null) return
  details.append(formOf(JSON.parse(details.dataset.operation)))
}

document.addEventListener("toggle", ({ target }) => showForm(target), true)
// Opened before this script was loaded.
for (const details of document.querySelectorAll("details.try[open]")) showForm(details)

// All forms share the address and the credentials.
document.addEventListener("input", ({ target }) => {
  const name = target.dataset?.memory
  if (name === undefined) return
  memory[name] = target.value
  for (const other of document.querySelectorAll(`input[data-memory="${name}"]`))
    if (other !== target) other.value = target.value
})

// The light page: shows the operations whose text has all words.
document.querySelector("#find")?.addEventListener("input", ({ target }) => {
  const words = target.value.toLowerCase().split(/\s+/)
  for (const section of document.querySelectorAll("section[data-words]")) {
    section.hidden = !words.every((word) => section.dataset.words.includes(word))
  }
})
