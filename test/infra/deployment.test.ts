/** The files in infra/ agree with the service: its settings, metrics, port, version, start script and documents. */
import { globSync, readFileSync, statSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { parse, parseAllDocuments } from "yaml"
import { pagesOf } from "../../infra/scripts/pages/Contents.ts"
import { withSiteLinks } from "../../infra/scripts/pages/Links.ts"
import * as Metrics from "../../src/platform/telemetry/Metrics.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const read = (path: string) => readFileSync(`${root}/${path}`, "utf8")
const chart = "infra/helm/licensing-service"

/** All files that run or watch the service, without the scripts of the checkout. */
const files = globSync("infra/**", { cwd: root, exclude: ["**/node_modules", "infra/scripts"] }).filter((path) =>
  statSync(`${root}/${path}`).isFile()
)

const manifest = JSON.parse(read("package.json")) as {
  readonly version: string
  readonly scripts: { readonly start: string }
  readonly devDependencies: { readonly node: string }
}
const settingsIn = (text: string) => [...new Set(text.match(/LICENSING_[A-Z_]+/g) ?? [])].toSorted()
const settings = settingsIn(
  ["Config", "ConsoleSettings", "MailSettings", "PortalSettings"]
    .flatMap((name) => Array.from(read(`src/platform/config/${name}.ts`).matchAll(/"(LICENSING_\w+)"/g), String))
    .join()
)

/** The names of an exposition's samples. */
const samples = new Set(
  Object.values(Metrics)
    .map((metric) => (typeof metric === "function" ? metric() : metric))
    .flatMap(({ id, type }) => (type === "Histogram" ? [`${id}_bucket`, `${id}_sum`, `${id}_count`] : [id]))
)
const unknownSamples = (expressions: ReadonlyArray<string>) =>
  expressions.flatMap((text) => text.match(/licensing_\w+/g) ?? []).filter((name) => !samples.has(name))

interface Alert {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: Readonly<Record<string, string>>
}
const { groups } = parse(read(`${chart}/files/alerts.yaml`)) as {
  readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<Alert> }>
}
const alerts = groups.flatMap(({ rules }) => rules)
const alertNames = alerts.map(({ alert }) => alert).toSorted()

interface Panel {
  readonly title: string
  readonly targets?: ReadonlyArray<{ readonly expr: string }>
}
const { panels } = JSON.parse(read(`${chart}/files/dashboard.json`)) as { readonly panels: ReadonlyArray<Panel> }
const dashboardExpressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))

interface Properties {
  readonly properties: Readonly<Record<string, Properties>>
}
const valuesSchema = JSON.parse(read(`${chart}/values.schema.json`)) as Properties
const values = parse(read(`${chart}/values.yaml`)) as { readonly port: number; readonly secrets: object }

/** All matches of the pattern's first group. */
const found = (path: string, pattern: RegExp) => Array.from(read(path).matchAll(pattern), ([, match]) => match)

describe("The files in infra", () => {
  for (const path of files.filter((name) => /\.(ya?ml|json)$/.test(name) && !name.includes("/templates/"))) {
    it(`${path} parses`, () =>
      assert.deepStrictEqual(
        parseAllDocuments(read(path), { merge: true }).flatMap(({ errors }) => errors),
        []
      ))
  }

  for (const path of files) {
    it(`${path} names only settings that exist`, () =>
      assert.deepStrictEqual(
        settingsIn(read(path)).filter((name) => !settings.includes(name)),
        []
      ))
  }

  it("have the version of package.json", () => {
    const { version } = manifest
    const { appVersion, version: chartVersion } = parse(read(`${chart}/Chart.yaml`)) as Record<string, string>
    assert.deepStrictEqual([appVersion, chartVersion], [version, version])
    assert.deepStrictEqual(found("infra/Dockerfile", /image\.version="(.*?)"/g), [version])
    assert.deepStrictEqual(found("infra/compose/compose.yaml", /licensing-service:([\d.]+)/g), [version])
    assert.deepStrictEqual(found("infra/Dockerfile", /^FROM node:([\d.]+)/gm), [manifest.devDependencies.node])
  })

  it("use the service's port", () => {
    const [port] = found("src/platform/config/Config.ts", /"LICENSING_PORT", .*?, (\d+),/g)
    assert.isDefined(port)
    assert.strictEqual(String(values.port), port)
    assert.deepStrictEqual(found("infra/Dockerfile", /(?:LICENSING_PORT=|EXPOSE )(\d+)/g), [port, port])
    const nodes = /licensing-\d(?::|, port_value: )(\d+)/g
    for (const name of [
      "balancers/haproxy.cfg",
      "balancers/nginx.conf",
      "balancers/envoy.yaml",
      "compose/prometheus.yaml"
    ]) {
      assert.deepStrictEqual(found(`infra/${name}`, nodes), [port, port], name)
    }
  })

  it("give the image's build all files of the documentation site", () => {
    const patterns = read("infra/Dockerfile.dockerignore").match(/^!.+$/gm) ?? []
    const allowed = patterns.map((line) => line.slice(1)).filter((name) => name !== "*.md")
    const texts = pagesOf(root)
    const pages = new Map(texts.map((page) => [page.source, page]))
    for (const { path, source } of texts) {
      const { files } = withSiteLinks(read(source), { source, path, root, base: "/docs/", pages })
      for (const file of [source, ...files]) {
        const isThere = allowed.some((name) => file === name || file.startsWith(`${name}/`)) || /^[^/]+\.md$/.test(file)
        assert.isTrue(isThere, `${source} needs ${file}, which infra/Dockerfile.dockerignore leaves out`)
      }
    }
  })

  it("take the options of Node from the start script of package.json", () => {
    assert.isTrue(manifest.scripts.start.endsWith(" src/main.ts serve"))
    const options = manifest.scripts.start.match(/--[\w-]+/g) ?? []
    assert.isNotEmpty(options)
    const unit = "infra/systemd/licensing.service"
    for (const path of files.filter((path) => !path.startsWith("infra/systemd/")))
      for (const option of options) assert.notInclude(read(path), option, path)
    assert.include(read("infra/Dockerfile"), 'ENTRYPOINT ["/app/infra/licensing"]')
    const given = manifest.scripts.start.match(/exec node (.*) src\/main\.ts serve$/)?.[1]
    assert.include(
      read(unit).replace(/\\\n */, ""),
      `ExecStart=/usr/bin/env node ${given} /opt/licensing/node_modules/`
    )
  })

  it("start several nodes with systemd as one, each at ports of its own", () => {
    const linesOf = (name: string) =>
      read(`infra/systemd/${name}.service`)
        .replaceAll(/\\\n */g, "")
        .split("\n")
        .filter((line) => !line.startsWith("#"))
    const [one, several] = [linesOf("licensing"), linesOf("licensing@")]
    const differing = several.filter((line, index) => line !== one[index])
    assert.deepStrictEqual(
      differing.map((line) => line.replace(/=.*/, "")),
      ["Description", "ExecStart", "EnvironmentFile"]
    )
    const start = several.find((line) => line.startsWith("ExecStart="))
    const ofNode = start?.replace(/^ExecStart=\/usr\/bin\/env (.*?) node /, "ExecStart=/usr/bin/env node ")
    assert.strictEqual(
      ofNode,
      one.find((line) => line.startsWith("ExecStart="))
    )
    const given = new Map(start?.match(/LICENSING_\w+=\S+/g)?.map((setting) => setting.split("=") as [string, string]))
    assert.strictEqual(given.get("LICENSING_PORT"), "808%i")
    assert.strictEqual(given.get("LICENSING_CLUSTER_LISTEN"), given.get("LICENSING_CLUSTER_ADDRESS"))
    for (const name of given.keys()) assert.include(settings, name)
  })

  it("give the service more time to stop than it takes", () => {
    const [beyondDrain] = found("src/main.ts", /stopMillisBeyondDrain = ([\d_]+)/g)
    const [drain] = found("src/platform/config/Config.ts", /"LICENSING_DRAIN_SECONDS", "[^"]*", (\d+)/g)
    const [unit] = found("infra/systemd/licensing.service", /TimeoutStopSec=(\d+)/g)
    const [compose] = found("infra/compose/compose.yaml", /stop_grace_period: (\d+)s\n {2}restart/g)
    const [grace] = found(`${chart}/values.yaml`, /terminationGracePeriodSeconds: (\d+)/g)
    const [preStop] = found(`${chart}/values.yaml`, /preStopSeconds: (\d+)/g)
    const seconds = Number(drain) + Number(beyondDrain?.replaceAll("_", "")) / 1_000
    for (const limit of [unit, compose, Number(grace) - Number(preStop)]) assert.isAbove(Number(limit), seconds)
  })
})

describe("The chart", () => {
  it("takes every setting, and no other", () => {
    const { secrets, settings: plain } = valuesSchema.properties
    const ofCluster = ["LICENSING_CLUSTER", "LICENSING_CLUSTER_ADDRESS", "LICENSING_CLUSTER_LISTEN"]
    const ofChart = ["LICENSING_HOST", "LICENSING_PORT", "LICENSING_DATA_DIR", ...ofCluster]
    assert.deepStrictEqual(settingsIn(read(`${chart}/templates/_helpers.tpl`)), [...ofCluster, "LICENSING_PORT"])
    const names = [secrets, plain].flatMap((section) => settingsIn(Object.keys(section?.properties ?? {}).join()))
    assert.deepStrictEqual([...names, ...ofChart].toSorted(), settings)
  })

  it("publishes whatever the service serves to the outside", () => {
    const trees = found(`${chart}/templates/ingress.yaml`, /"(\/[\w/]+)"/g)
    const served = globSync("src/edge/documents/publishing/*.ts", { cwd: root }).flatMap((path) =>
      found(path, /router\.add\("GET", "(\/\w+)\//g)
    )
    assert.includeMembers(served, ["/console", "/docs", "/portal"])
    assert.includeMembers(trees, [...served, "/api/v1"])
  })

  it("describes every value in its schema", () => {
    const namesOf = (object: object) => Object.keys(object).toSorted()
    const { global: _, ...described } = valuesSchema.properties
    assert.deepStrictEqual(namesOf(values), namesOf(described))
    assert.deepStrictEqual(namesOf(values.secrets), namesOf(described["secrets"]?.properties ?? {}))
  })
})

describe("The alerts and the dashboard", () => {
  it("use only metrics that the service exposes", () => {
    assert.deepStrictEqual(unknownSamples(alerts.map(({ expr }) => expr)), [])
    assert.isNotEmpty(dashboardExpressions)
    assert.deepStrictEqual(unknownSamples(dashboardExpressions), [])
  })

  it("show every metric", () => {
    const shown = dashboardExpressions.join()
    const names = [...samples].filter((name) => !/_(sum|count)$/.test(name))
    const notInAnyPanel = names.filter((name) => !shown.includes(name.replace(/_bucket$/, "")))
    assert.deepStrictEqual(notInAnyPanel, [])
  })

  it("have a section in OPERATIONS.md for each alert, and no section without an alert", () => {
    const [, section = ""] = read("docs/OPERATIONS.md").split(/^## Alerts$/m)
    const [text = ""] = section.split(/^## /m)
    const headings = Array.from(text.matchAll(/^### (\w+)$/gm), ([, name]) => name)
    assert.deepStrictEqual(headings.toSorted(), alertNames)
    for (const { alert, annotations } of alerts) {
      assert.strictEqual(annotations["runbook"], `docs/OPERATIONS.md#${alert.toLowerCase()}`)
    }
  })

  it("have a test in which each alert fires and one in which it is silent", () => {
    const { tests } = parse(read("test/infra/alerts.test.yaml")) as { readonly tests: ReadonlyArray<{ name: string }> }
    const names = tests.map(({ name }) => name)
    const missing = alertNames.flatMap((name) => [`${name} fires`, `${name} is silent`])
    assert.deepStrictEqual(
      missing.filter((name) => !names.includes(name)),
      []
    )
  })

  it("have a severity that tells when to act", () =>
    assert.isTrue(alerts.every(({ labels }) => ["page", "ticket"].includes(labels.severity))))
})
