/**
 * Imports an account of Keygen: what has a counterpart here is mapped, the rest is listed. Ids are derived from Keygen's, so the
 * import can be repeated.
 */
import { Clock, Effect, FileSystem } from "effect"
import { SqlClient } from "effect/sql"
import { VendorKeys } from "../../../licensing/management/VendorKeys.ts"
import type { TargetPolicy } from "../../../licensing/model/LicenseRecords.ts"
import { readTargetPolicies } from "../../../licensing/rows/TargetPolicies.ts"
import { resolvePath } from "../Files.ts"
import { type Accept, type ImportOptions, runImport } from "../ImportRun.ts"
import { licensesOfKeys } from "../LicenseUnits.ts"
import { type Account, customerUnit, type KeygenPolicy, policyUnit, productUnit } from "./Catalog.ts"
import { downloadAccount } from "./KeygenDownload.ts"
import { keygenLicense, type LicenseContext } from "./KeygenLicenses.ts"
import { chooseProducts, type ProductCodes } from "./KeygenProducts.ts"
import { idOf, makeNotes, type Notes } from "./Notes.ts"
import { type KeygenPage, keygenPage, pageFolder, type ReadPage, type Resource, related } from "./Resources.ts"

type ReadPages = Effect.Success<ReturnType<typeof pageFolder>>

export const importKeygen = Effect.fnUntraced(function* (source: string, codes: ProductCodes, options: ImportOptions) {
  const folder = /^https?:\/\//.test(source) ? yield* downloadFolder(source) : source
  return yield* importPages(folder, codes, options, keygenPage)
}, Effect.scoped)

/** Imports a folder of pages that are, or are read as, resources of Keygen. */
export const importPages = Effect.fnUntraced(function* (
  source: string,
  codes: ProductCodes,
  options: ImportOptions,
  pageOf: ReadPage
) {
  const read = yield* pageFolder(yield* resolvePath(source), pageOf)
  const notes = makeNotes()
  const account = yield* readAccount(read, notes)
  yield* chooseProducts(account, codes)
  const result = yield* runImport(
    Effect.fnUntraced(function* (accept) {
      const context = yield* importCatalog(account, notes, accept)
      yield* importLicenses(read, context, accept, options.dryRun)
    }),
    options
  )
  for (const id of account.machines.keys())
    notes.add("machines were skipped: their license is missing", `license ${id}`)
  return { ...result, unmapped: notes.list() }
})

const downloadFolder = Effect.fnUntraced(function* (url: string) {
  const files = yield* FileSystem.FileSystem
  const folder = yield* Effect.orDie(files.makeTempDirectoryScoped({ prefix: "licensing-keygen-" }))
  yield* downloadAccount(url, folder)
  return folder
})

/** Everything but the licenses: they come last and are the most. */
const readAccount = Effect.fnUntraced(function* (read: ReadPages, notes: Notes) {
  const account: Account = {
    products: new Map(),
    targets: new Map(),
    policies: new Map(),
    users: new Map(),
    entitlements: new Map(),
    entitled: new Map(),
    machines: new Map(),
    expiring: new Set()
  }
  const lists = new Map<string, { readonly records: number; readonly total: number }>()
  yield* read((page) =>
    Effect.sync(() => {
      for (const resource of page.resources) keep(account, page, resource, notes)
      if (page.part === undefined) return
      const { list, records, total } = page.part
      lists.set(list, { records: records + (lists.get(list)?.records ?? 0), total })
    })
  )
  for (const [list, { records, total }] of lists)
    if (records < total) notes.add(`pages of ${list} are missing: the folder has ${records} of ${total}`, list)
  return account
})

const keep = (account: Account, { policyId }: KeygenPage, resource: Resource, notes: Notes) => {
  const { attributes, id, type, unread = [] } = resource
  for (const name of unread) notes.add(`${type}' ${name} is not imported`, id)
  if (type === "products" || type === "policies" || type === "users") account[type].set(id, resource)
  else if (type === "entitlements") {
    account.entitlements.set(id, resource)
    if (policyId !== undefined) getOrMake(account.entitled, policyId, () => new Set<string>()).add(id)
  } else if (type === "machines") {
    getOrMake(account.machines, related(resource, "license") ?? "", (): Array<Resource> => []).push(resource)
  } else if (type === "licenses") {
    if (attributes["expiry"] != null) account.expiring.add(related(resource, "policy") ?? "")
  } else notes.add(`${type} are not imported`, id)
}

const getOrMake = <K, V>(map: Map<K, V>, key: K, make: () => V): V => {
  const found = map.get(key)
  if (found !== undefined) return found
  const made = make()
  map.set(key, made)
  return made
}

const importCatalog = Effect.fnUntraced(function* (account: Account, notes: Notes, accept: Accept) {
  const now = yield* Clock.currentTimeMillis
  const policies = new Map<string, KeygenPolicy>()
  const ids = [...account.policies.keys()].map((id) => idOf("pol", id))
  const existing = yield* Effect.orDie(readTargetPolicies(yield* SqlClient.SqlClient, ids))
  const customers = new Map<
    string,
    { readonly id: string; readonly name: string; readonly email?: string | undefined }
  >()
  for (const [id, source] of account.products) {
    if (account.targets.get(id)!.features !== undefined) continue
    const unit = productUnit(source, account, notes, now)
    if (unit === undefined) account.products.delete(id)
    else yield* accept(unit)
  }
  for (const [id, source] of account.policies) {
    const mapped = policyUnit(source, account, notes, now)
    if (mapped === undefined) continue
    policies.set(id, asStored(mapped.policy, existing.get(mapped.policy.id)))
    yield* accept(mapped.unit)
  }
  for (const [id, source] of account.users) {
    const unit = customerUnit(source, notes, now)
    if (unit === undefined) continue
    const { email, id: customerId, name } = unit.root.row as { readonly [name: string]: string }
    customers.set(id, { id: customerId!, name: name!, email })
    yield* accept(unit)
  }
  for (const id of account.entitlements.keys()) {
    if (![...account.entitled.values()].some((ids) => ids.has(id))) {
      notes.add("entitlements that no policy has are not imported: assign features to licenses", id)
    }
  }
  return { policies, customers, machines: account.machines, notes, now } satisfies LicenseContext
})

/** A policy that exists is not changed by an import: its licenses get its own rules and features. */
const asStored = (mapped: KeygenPolicy, stored: TargetPolicy | undefined): KeygenPolicy =>
  stored === undefined
    ? mapped
    : {
        ...mapped,
        policy: stored.policy,
        features: stored.features,
        requireHeartbeat: stored.policy.require_heartbeat
      }

const importLicenses = Effect.fnUntraced(function* (
  read: ReadPages,
  context: LicenseContext & { readonly machines: Account["machines"] },
  accept: Accept,
  dryRun: boolean
) {
  const vendorKeys = yield* VendorKeys
  let announced = dryRun
  const keys = new Map<string, unknown>()
  yield* read(
    Effect.fnUntraced(function* ({ resources }) {
      const mapped = resources
        .filter(({ type }) => type === "licenses")
        .flatMap((source) => keygenLicense(source, context) ?? [])
      for (const { id } of resources) context.machines.delete(id)
      if (!announced && mapped.some(({ isVendorKey }) => isVendorKey)) {
        yield* vendorKeys.announce
        announced = true
      }
      const existing = yield* licensesOfKeys(mapped.map(({ keyHash }) => keyHash))
      for (const { keyHash, unit } of mapped) {
        const { id } = unit.root.row
        const other = existing.get(keyHash)?.id ?? keys.get(keyHash)
        if (other !== undefined && other !== id) {
          context.notes.add("licenses were skipped: another license has their key", `${unit.root.source}, ${other}`)
          continue
        }
        if (keys.has(keyHash)) {
          context.notes.add("licenses were skipped: another page has them, too", unit.root.source!)
          continue
        }
        keys.set(keyHash, id)
        yield* accept(unit)
      }
    })
  )
})
