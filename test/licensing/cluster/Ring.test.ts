/**
 * Which node owns a license, by the nodes in the database and those that can be reached; the test plays the other
 * nodes.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { RunnerAddress } from "effect/cluster"
import { layerAt } from "../../../src/licensing/cluster/Cluster.ts"
import { join, keyOf, ownersOf, shardOf, storage } from "../../../src/licensing/cluster/Membership.ts"
import { type Link, listen } from "../../../src/licensing/cluster/NodeLink.ts"
import { type FromOwner, type ToOwner, wireVersion } from "../../../src/licensing/cluster/Wire.ts"
import { Journal } from "../../../src/licensing/engine/Journal.ts"
import { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import { pendingCommand } from "../../../src/licensing/engine/PendingCommand.ts"
import { check } from "../../../src/licensing/rules/Activation.ts"
import { MasterKey } from "../../../src/platform/signing/MasterKey.ts"
import { Signer } from "../../../src/platform/signing/Signer.ts"
import { Database } from "../../support/database/Database.ts"
import { freePort } from "../../support/processes/FreePort.ts"
import { hardware, requestOf } from "../../support/rules/Licenses.ts"

const masterKey = {
  derive: (_: string, keyId = "key") => ({ keyId, secret: Buffer.alloc(32, 7) })
} as unknown as MasterKey["Service"]

const freeAddress = Effect.map(freePort, (port) => RunnerAddress.make("127.0.0.1", port))

const licenses = Array.from({ length: 1_000 }, (_, index) => `lic_${index}`)

const commandOf = (license: string) =>
  pendingCommand({
    rule: check,
    command: requestOf(hardware("m")),
    origin: { actor_type: "license", actor_id: license, request_id: "req_1", ip_address: undefined },
    begin: () => undefined,
    span: undefined,
    resume: () => {}
  })

/** Another node, which gives every command back. */
const answering = (link: Link<FromOwner>) => {
  link.send({ version: wireVersion, epoch: "epoch" })
  const onText = (text: string): void => {
    const { commands } = JSON.parse(text) as ToOwner
    link.send(
      commands.length === 0 ? { epoch: "epoch" } : { outcomes: commands.map(([id]) => [id, "undecided"] as const) }
    )
  }
  return { onText, onClose: () => {} }
}

/** A node of the cluster. Returns the licenses whose commands it hands over at the moment. */
const startNode = Effect.fnUntraced(function* (address: RunnerAddress.RunnerAddress) {
  let handOver: Parameters<LicenseActors["Service"]["setRouter"]>[0] = () => false
  const actors: Partial<LicenseActors["Service"]> = {
    setRouter: (given) => {
      handOver = given
    },
    changedElsewhereAt: () => Number.POSITIVE_INFINITY,
    postHere: () => {}
  }
  const journal: Partial<Journal["Service"]> = {
    retire: () => Effect.void,
    epoch: { current: "own", renew: () => {}, onRenewed: new Set() }
  }
  const needs = Layer.mergeAll(
    Layer.succeed(LicenseActors, actors as LicenseActors["Service"]),
    Layer.succeed(Journal, journal as Journal["Service"]),
    Layer.succeed(Signer, {} as Signer["Service"]),
    Layer.succeed(MasterKey, masterKey)
  )
  yield* Layer.build(Layer.provide(layerAt(address, address), needs))
  return () => licenses.filter((license) => handOver(license, commandOf(license)))
})

layer(Database.layer, { excludeTestServices: true, timeout: 60_000 })("The owners of licenses", (it) => {
  it.effect("are nodes that can be reached: the others' licenses are distributed among these", () =>
    Effect.gen(function* () {
      const [self, second, third] = [yield* freeAddress, yield* freeAddress, yield* freeAddress]
      const storageContext = yield* Layer.build(storage)
      // The third one is in the database, but nothing listens at its address.
      for (const node of [second, third])
        yield* Effect.provideContext(
          join(node, () => Effect.void),
          storageContext
        )
      const secondScope = yield* Scope.make()
      yield* Scope.provide(listen(second, masterKey, answering), secondScope)
      const handedOver = yield* startNode(self)
      const othersOf = (...nodes: ReadonlyArray<typeof self>) => {
        const owners = ownersOf(nodes.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)))
        return licenses.filter((license) => keyOf(owners[shardOf(license)]!) !== keyOf(self))
      }
      const awaitHandedOver = (expected: ReadonlyArray<string>) =>
        Effect.repeat(Effect.andThen(Effect.yieldNow, Effect.sync(handedOver)), {
          until: (found) => found.join() === expected.join()
        })
      assert.isAbove(othersOf(self, second).length, 100)
      yield* awaitHandedOver(othersOf(self, second))
      yield* Scope.close(secondScope, Exit.void)
      yield* awaitHandedOver([])
      yield* Scope.provide(listen(third, masterKey, answering), yield* Effect.scope)
      yield* awaitHandedOver(othersOf(self, third))
    })
  )
})
