/**
 * The operator's commands. Those that need the service work while it is running: through the database, with the service's own
 * settings. Results go to standard output, hints and warnings to standard error (docs/OPERATIONS.md, "Commands").
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { cryptlexPage } from "../transfer/services/Cryptlex.ts"
import { licenseSpringPage } from "../transfer/services/LicenseSpring.ts"
import {
  bulkCreateFlags,
  bulkJobFlags,
  cancelBulkJob,
  createBulkJob,
  listBulkJobs,
  showBulkJob
} from "./BulkCommands.ts"
import { doctor } from "./Doctor.ts"
import { listKeys, rotateKey } from "./Keys.ts"
import {
  findFlags,
  findLicenses,
  licenseFlags,
  reinstateLicense,
  resetDevice,
  resetDeviceFlags,
  showLicense,
  suspendLicense
} from "./LicenseCommands.ts"
import { listen, listenFlags } from "./Listen.ts"
import { checkNextKey, rotateMasterKeys } from "./MasterKeys.ts"
import { mcp, mcpFlags } from "./Mcp.ts"
import { migrate, migrateFlags } from "./Migrate.ts"
import { nodes } from "./NodeCommands.ts"
import { contract } from "./OpenApi.ts"
import { asFirstOperator, asOperator, asOperatorWithoutKeys, settings } from "./Operator.ts"
import { jsonFlag } from "./Output.ts"
import { createFlags, createToken, listTokens, revokeFlags, revokeToken } from "./TokenCommands.ts"
import {
  exportFlags,
  exportRecords,
  importCsvFile,
  importCsvFlags,
  importExport,
  importFileFlags,
  importKeygenAccount,
  importKeygenFlags,
  importService,
  importServiceFlags
} from "./TransferCommands.ts"
import { verifyFlags, verifyResponse } from "./Verify.ts"

const example = (command: string, description: string) =>
  Command.withExamples([{ command: `licensing ${command}`, description }])

const keys = Command.make("keys").pipe(
  Command.withDescription("The keys that sign responses."),
  Command.withSubcommands([
    Command.make("list", jsonFlag, (flags) => asOperator(listKeys(flags))).pipe(
      Command.withDescription("List the published signing keys, the active one first."),
      example("keys list --json", "As the API publishes them")
    ),
    Command.make("rotate", jsonFlag, (flags) => asOperator(rotateKey(flags))).pipe(
      Command.withDescription("Sign with a new key from now on. Every node uses it within a second."),
      example("keys rotate", "Prints the new key's id")
    )
  ])
)

const masterKey = Command.make("master-key").pipe(
  Command.withDescription("The key that encrypts stored secrets."),
  Command.withSubcommands([
    Command.make("rotate", jsonFlag, (flags) =>
      Effect.andThen(Effect.provide(checkNextKey, settings), asOperator(rotateMasterKeys(flags)))
    ).pipe(
      Command.withDescription(
        "Encrypt all secrets with LICENSING_MASTER_KEY_NEXT, which must be set on every node first. If the master key is a file, create a new key file instead."
      ),
      example("master-key rotate", "The second of the four steps in docs/SECURITY.md")
    )
  ])
)

const tokens = Command.make("tokens").pipe(
  Command.withDescription("API tokens."),
  Command.withSubcommands([
    Command.make("create", createFlags, (flags) => asFirstOperator(createToken(flags))).pipe(
      Command.withDescription("Create an API key and print its token. Use it if all admin tokens are lost."),
      Command.withExamples([
        { command: "licensing tokens create --name rescue", description: "With the scope admin" },
        {
          command: "licensing tokens create --name reports --scopes report:read,event:read",
          description: "With fewer rights"
        },
        {
          command:
            "licensing tokens create --name shop --scopes license:read --product prod_01JD3QK8Z5YV0W9T4N7R2M6XBC",
          description: "For one product"
        }
      ])
    ),
    Command.make("list", jsonFlag, (flags) => asOperator(listTokens(flags))).pipe(
      Command.withDescription("List the API keys, the newest first, without their tokens."),
      example("tokens list", "Id, first characters, state, last use, scopes, name")
    ),
    Command.make("revoke", revokeFlags, (flags) => asOperator(revokeToken(flags))).pipe(
      Command.withDescription("Revoke an API key permanently. Every node refuses its token within a second."),
      example("tokens revoke key_01JD3QK8Z5YV0W9T4N7R2M6XBC", "After a token has leaked")
    )
  ])
)

const licenses = Command.make("licenses").pipe(
  Command.withDescription("Licenses: look one up, block it, free a device's slot."),
  Command.withSubcommands([
    Command.make("find", findFlags, (flags) => asOperator(findLicenses(flags))).pipe(
      Command.withDescription("Find licenses by id, by the last four characters of the key, by name or email."),
      Command.withExamples([
        { command: "licensing licenses find 7K2Q", description: "By the end of the key" },
        { command: "licensing licenses find ada@example.com", description: "By a part of the name or email" }
      ])
    ),
    Command.make("show", licenseFlags, (flags) => asOperator(showLicense(flags))).pipe(
      Command.withDescription("Print a license with its features and devices."),
      example("licenses show lic_01JD3QK8Z5YV0W9T4N7R2M6XBC", "Dates, counters, quotas, devices")
    ),
    Command.make("suspend", licenseFlags, (flags) => asOperator(suspendLicense(flags))).pipe(
      Command.withDescription("Suspend a license: applications are refused, floating seats end, devices stay."),
      example("licenses suspend lic_01JD3QK8Z5YV0W9T4N7R2M6XBC", "Takes effect at once on every node")
    ),
    Command.make("reinstate", licenseFlags, (flags) => asOperator(reinstateLicense(flags))).pipe(
      Command.withDescription("End a suspension."),
      example(
        "licenses reinstate lic_01JD3QK8Z5YV0W9T4N7R2M6XBC",
        "The state is then active, grace_period or expired, by its dates"
      )
    ),
    Command.make("reset-device", resetDeviceFlags, (flags) => asOperator(resetDevice(flags))).pipe(
      Command.withDescription("Free the slot of a device, for example of a lost computer."),
      example(
        "licenses reset-device lic_01JD3QK8Z5YV0W9T4N7R2M6XBC dev_01JD3QM2R7N4T9W0VY5Z8KQXBC",
        "Both ids as `licenses show` prints them"
      )
    )
  ])
)

const bulk = Command.make("bulk").pipe(
  Command.withDescription("Changes of many licenses, which the running nodes carry out."),
  Command.withSubcommands([
    Command.make("create", bulkCreateFlags, (flags) => asOperator(createBulkJob(flags))).pipe(
      Command.withDescription(
        "Request a change of all licenses that match now. docs/API.md has actions and parameters."
      ),
      Command.withExamples([
        {
          command: "licensing bulk create suspend --filter 'metadata[reseller]=Northwind' --dry-run",
          description: "What it would change"
        },
        {
          command: "licensing bulk create apply_policy --filter policy_id=pol_01JD3QK8Z5YV0W9T4N7R2M6XBC",
          description: "Brings a policy's features to the licenses that have it"
        }
      ])
    ),
    Command.make("list", jsonFlag, (flags) => asOperator(listBulkJobs(flags))).pipe(
      Command.withDescription("List the jobs of the last 90 days, the newest first."),
      example("bulk list", "Id, action, status, counts")
    ),
    Command.make("show", bulkJobFlags, (flags) => asOperator(showBulkJob(flags))).pipe(
      Command.withDescription("Print how far a job is, and which licenses it could not change."),
      example("bulk show bulk_01JD3QK8Z5YV0W9T4N7R2M6XBC", "With the reason of each refusal")
    ),
    Command.make("cancel", bulkJobFlags, (flags) => asOperator(cancelBulkJob(flags))).pipe(
      Command.withDescription("Cancel a job. What it has changed stays changed."),
      example("bulk cancel bulk_01JD3QK8Z5YV0W9T4N7R2M6XBC", "While it is pending or running")
    )
  ])
)

const webhooks = Command.make("webhooks").pipe(
  Command.withDescription("Tools for developing webhook receivers."),
  Command.withSubcommands([
    Command.make("listen", listenFlags, listen).pipe(
      Command.withDescription("Receive deliveries on this machine, verify and print them, until SIGINT."),
      example("webhooks listen --port 4242 --secret whsec_…", "The service needs LICENSING_WEBHOOK_ALLOW_LOCAL=true")
    )
  ])
)

const migration = Command.make("migrate", migrateFlags, migrate).pipe(
  Command.withDescription(
    "Migrate the database to the schema of this version, and exit. Every start of a node does this, too."
  ),
  Command.withExamples([
    { command: "licensing migrate", description: "Before the nodes of the new version start" },
    { command: "licensing migrate --check", description: "Exit code 1 if migrations are missing" }
  ])
)

const examination = Command.make("doctor", jsonFlag, doctor).pipe(
  Command.withDescription(
    "Check settings, database, keys, workers, disk and clock, and print what to do. Exit code 0: all ok, 1: warnings, 2: failures."
  ),
  example("doctor", "With the settings and the user of the service")
)

const verification = Command.make("verify", verifyFlags, verifyResponse).pipe(
  Command.withDescription(
    "Verify a saved response or offline envelope as an application must. Exit code 0: genuine, 1: not, 2: it cannot be checked."
  ),
  Command.withExamples([
    {
      command: "licensing verify response.json --keys keys.json --product-code editor --fingerprint ada-laptop",
      description: "The body byte for byte, as `curl -o response.json` saves it"
    },
    {
      command: "licensing verify envelope.json --keys keys.json --license-key-file key.txt",
      description: "An offline envelope"
    }
  ])
)

const assistant = Command.make("mcp", mcpFlags, mcp).pipe(
  Command.withDescription(
    "Serve the management operations to an assistant, over standard input and output (Model Context Protocol). LICENSING_TOKEN is an API token: its scopes decide which operations are offered."
  ),
  Command.withExamples([
    {
      command: "licensing mcp --url https://licenses.example.com --groups licenses,customers",
      description: "As the assistant starts it, with LICENSING_TOKEN in its environment"
    },
    { command: "licensing mcp --read-only --json", description: "The operations of a server that can change nothing" }
  ])
)

const exporting = Command.make("export", exportFlags, (flags) => asOperatorWithoutKeys(exportRecords(flags))).pipe(
  Command.withDescription(
    "Write all records to a file of JSON lines, as one snapshot, while the service runs. docs/OPERATIONS.md lists what is not exported."
  ),
  example("export licenses.jsonl", "The file contains personal data: only its owner can read it")
)

const importing = Command.make("import").pipe(
  Command.withDescription("Import records while the service runs. Existing records are never changed."),
  Command.withSubcommands([
    Command.make("file", importFileFlags, (flags) => asOperatorWithoutKeys(importExport(flags))).pipe(
      Command.withDescription("Import a file of `licensing export`. Repeat it after an interruption."),
      Command.withExamples([
        { command: "licensing import file licenses.jsonl --dry-run", description: "What would be imported" },
        { command: "licensing import file licenses.jsonl", description: "With the master key of the exporting service" }
      ])
    ),
    Command.make("csv", importCsvFlags, (flags) => asOperator(importCsvFile(flags))).pipe(
      Command.withDescription(
        "Import licenses with the keys that customers have. docs/guides/import-csv.md lists the columns."
      ),
      example("import csv licenses.csv --dry-run", "All faults, by line; nothing is imported")
    ),
    Command.make("keygen", importKeygenFlags, (flags) => asOperator(importKeygenAccount(flags))).pipe(
      Command.withDescription("Import products, policies, users, licenses and machines of a Keygen account."),
      Command.withExamples([
        { command: "licensing import keygen ./keygen --dry-run", description: "From a folder of saved pages" },
        {
          command: "licensing import keygen https://api.keygen.sh/v1/accounts/ACCOUNT",
          description: "From the API, with KEYGEN_TOKEN set"
        }
      ])
    ),
    Command.make("cryptlex", importServiceFlags, (flags) => asOperator(importService(cryptlexPage)(flags))).pipe(
      Command.withDescription("Import products, users, licenses and activations of a Cryptlex account."),
      example("import cryptlex ./cryptlex --dry-run", "What would be imported, and what not")
    ),
    Command.make("licensespring", importServiceFlags, (flags) =>
      asOperator(importService(licenseSpringPage)(flags))
    ).pipe(
      Command.withDescription("Import products, customers, licenses and devices of a LicenseSpring account."),
      example("import licensespring ./licensespring --dry-run", "What would be imported, and what not")
    )
  ])
)

export const commands = [
  migration,
  examination,
  nodes,
  tokens,
  keys,
  masterKey,
  licenses,
  verification,
  contract,
  exporting,
  importing,
  bulk,
  webhooks,
  assistant
] as const
