/** Which test executes each block of code in the documents, and why others are only checked: for test/infra/Blocks.slow.test.ts. */

const commandsTest = "test/infra/Commands.slow.test.ts"
const deliveries = "test/ledger/webhooks/Documentation.slow.test.ts"
const guides = "test/infra/Guides.slow.test.ts"
const programs = "test/infra/Programs.slow.test.ts"
const packed = "test/infra/packages/Kit.slow.test.ts"
const verifiers = "test/verifying/Verifiers.slow.test.ts"
const here = "test/infra/Blocks.slow.test.ts"
const states = "test/infra/states.test.ts"

/** The test that executes a block, or generates it and compares; by page, then `heading: language`, a second one with `#2`. */
export const executed: { readonly [page: string]: { readonly [block: string]: string } } = {
  "README.md": {
    "Start: sh": commandsTest,
    "The first license: sh": commandsTest,
    "The first license: sh #2": commandsTest,
    "The first license: sh #3": commandsTest,
    "The first license: sh #4": commandsTest
  },
  "docs/OPERATIONS.md": {
    "First checks: sh": guides,
    "Stored data: sql": here,
    "Backup and restore: sh #2": guides,
    "Export and import: sh": guides,
    "When the master key is lost: sql": here
  },
  "docs/STATES.md": { "Licenses: mermaid": states, "Devices: mermaid": states, "Floating leases: mermaid": states },
  "docs/WEBHOOKS.md": {
    "In five minutes: sh": commandsTest,
    "In five minutes: sh #2": commandsTest,
    "TypeScript: ts": deliveries,
    "Python: python": deliveries,
    "Go: go": deliveries,
    "Ruby: ruby": deliveries,
    "Java: java": deliveries,
    "C#: csharp": deliveries,
    "PHP: php": deliveries,
    "Standard Webhooks: ts": here
  },
  "docs/guides/applications/cli.md": { "Quick start: js": programs, "Without a network: sh #2": programs },
  "docs/guides/applications/electron.md": {
    "Quick start: js": programs,
    "Quick start: js #2": programs,
    "Quick start: html": programs
  },
  "docs/guides/applications/tauri.md": { "In the web view: js": programs },
  "docs/guides/applications/web-application.md": { "A back end: ts": programs, "A back end: sh": programs },
  "docs/guides/effect-client.md": { "A complete example: ts": packed, "Signed responses: ts": packed },
  "docs/guides/floating-seats.md": { "The application: js": programs },
  "docs/guides/import-csv.md": { "Licenses from a CSV file: sh": guides, "Licenses from a CSV file: csv": guides },
  "docs/guides/kit.md": {
    "Quick start: js": "test/infra/packages/Service.slow.test.ts",
    "Use: ts": packed,
    "Use: ts #2": packed,
    "Quotas: ts": packed,
    "Devices of the license: ts": packed,
    "Stores: ts": packed,
    "Offline: ts": packed
  },
  "docs/guides/testing.md": { "A year in a test: ts": packed, "With a running service: ts": packed },
  "docs/guides/personal-data.md": { "Erasing a customer's personal data: sh": guides },
  "docs/guides/quotas.md": {
    "The application: js": programs,
    "The application: sh": programs,
    "Top-ups: sh": programs,
    "The invoice: js": programs,
    "The invoice: sh": programs
  },
  "docs/guides/scenarios.md": {
    "Seven ways to sell: ts": programs,
    "Node-locked, with a trial: ts": programs,
    "Floating, with sleeping laptops: ts": programs,
    "AI credits by the month, with overage billed: ts": programs,
    "Perpetual, with maintenance: ts": programs,
    "Air-gapped: ts": programs,
    "Containers: ts": programs,
    "Subscription: ts": programs
  },
  "docs/guides/stripe.md": { "The program: ts": "test/clients/client/Stripe.slow.test.ts" },
  "docs/guides/upgrade.md": { "Check afterwards: sh": guides },
  "docs/clients/README.md": { "How they are checked: sh": verifiers },
  "docs/clients/cpp.md": { "Quick start: sh": verifiers, "Quick start: cpp": verifiers },
  "docs/clients/csharp.md": { "Quick start: sh": verifiers, "Quick start: csharp": verifiers },
  "docs/clients/go.md": { "Quick start: sh": verifiers, "Quick start: go": verifiers },
  "docs/clients/java.md": { "Quick start: sh": verifiers, "Quick start: java": verifiers },
  "docs/clients/python.md": { "Quick start: sh": verifiers, "Quick start: python": verifiers }
}

const printed = "What a program prints."
const formula = "A form, not code."
const shape = "JSON: it has the contract's shape."
const sameProgram = "Runs the program, as test/infra/Programs.slow.test.ts does."
const installs = "npm install loads packages; test/infra/packages packs and installs them."
const long = "Maintainers' commands that take minutes to hours; .ci/run executes the short ones."

/** The blocks that are only checked, each with the reason. */
export const excused: typeof executed = {
  "README.md": { "Start: ": printed, "Start: sh #2": "All quick tests, which .ci/run executes." },
  "docs/API.md": { "Errors: json": shape, "Runtime operations: json": shape, "Signed responses: json": shape },
  "docs/CONSOLE.md": {
    "Working on it: sh": "A development server on a fixed port; test/clients/console builds the same sources."
  },
  "docs/DEPLOYMENT.md": {
    "The package: sh": "npm install loads packages; test/infra/packages/Service.slow.test.ts starts the service.",
    "The package: sh #2": "npm install loads packages; test/infra/packages/Service.slow.test.ts starts the service.",
    "The image: sh": "Needs Docker.",
    "Compose: sh": "Needs Docker.",
    "Kubernetes: sh": "Needs a cluster.",
    "systemd: sh": "Installs a service on the machine.",
    "systemd: sh #2": "Needs systemd and the installed service.",
    "Several nodes on one machine: sh": "Installs services on the machine."
  },
  "docs/FIGURES.md": { "Figures: sh": long },
  "docs/OPERATIONS.md": {
    "Backup and restore: sh": "Needs PostgreSQL's tools in the server's version.",
    "Failover: ": formula
  },
  "docs/RELIABILITY.md": {
    "How it is proved: sh": long,
    "Upgrades: sh": long,
    "Mutated requests: sh": long,
    "Linearizable histories: sh": long,
    "Soak: sh": long
  },
  "docs/TESTING.md": {
    "Testing: sh": long,
    "The document and the service: sh": "Installs Schemathesis; takes ten minutes.",
    "The document and the service: sh #2": "Installs the linters.",
    "Measuring the tests: sh": long,
    "The fuzz test: sh": long,
    "The simulator: sh": long
  },
  "docs/WEBHOOKS.md": { "A delivery: json": shape, "Verifying: ": formula },
  "docs/clients/csharp.md": { "Quick start: sh #2": "dotnet add package loads packages." },
  "docs/guides/applications/cli.md": {
    "Quick start: sh": installs,
    "Quick start: sh #2": installs,
    "Without a network: sh": sameProgram
  },
  "docs/guides/applications/electron.md": { "Quick start: sh": installs, "Quick start: sh #2": installs },
  "docs/guides/applications/swift.md": {
    "What it does: swift": "Needs a Swift compiler; its names are compared with the file's.",
    "Check it first: sh": "Needs a Swift compiler; test/verifying runs it where there is one."
  },
  "docs/guides/applications/tauri.md": { "License keys in a Tauri application: sh": "A setting." },
  "docs/guides/console-sign-in.md": {
    "What the provider has to do: ":
      "Settings for a provider of the reader's; test/clients/console/tasks/SignIn.slow.test.ts has one of its own.",
    "Microsoft Entra ID: ": "Needs an account there.",
    "Auth0: ": "Needs an account there."
  },
  "docs/guides/customer-page.md": {
    "The customer's page: ": "Settings; test/clients/portal starts a service with its own."
  },
  "docs/guides/effect-client.md": {
    "The typed client: sh": "npm install loads packages; test/infra/packages/Kit.slow.test.ts packs."
  },
  "docs/guides/floating-seats.md": { "The application: sh": sameProgram },
  "docs/guides/scenarios.md": { "Seven ways to sell: sh": sameProgram },
  "docs/guides/from-keygen.md": {
    "Moving from Keygen: sh": "Needs an account at Keygen; test/tools/transfer imports from a copy of its API."
  },
  "docs/guides/from-other-services.md": {
    "Moving from Cryptlex or LicenseSpring: sh":
      "Needs an account there; test/tools/transfer imports lists in the shape of their APIs."
  },
  "docs/guides/kit.md": {
    "The application kit: sh": "npm install loads packages; test/infra/packages/Kit.slow.test.ts packs.",
    "Quick start: sh": "npm install loads packages; test/infra/packages/Service.slow.test.ts runs the program."
  },
  "docs/guides/generated-clients.md": { "Generated clients: sh": "Loads the generators." },
  "docs/guides/mail.md": {
    "Switching it on: sh": "Needs a mail server; test/ledger/mail has one of its own.",
    "Templates: ": "Lines of a template."
  },
  "docs/guides/tour.md": { "The tour: sh": ".ci/run executes the first two." }
}
