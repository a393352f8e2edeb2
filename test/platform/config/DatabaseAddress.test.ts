import { assert, describe, it } from "@effect/vitest"
import { addressOf } from "../../../src/platform/config/DatabaseAddress.ts"
import { databaseAddress, replicaAddress } from "../../../src/platform/config/Setting.ts"

describe("The address of a database", () => {
  it("has one host", () => {
    const address = addressOf("postgres://u:p@db/licensing?sslmode=require")
    assert.deepStrictEqual(address?.wanted, "any")
    assert.deepStrictEqual(address?.name, "db:5432/licensing")
    assert.deepStrictEqual(address?.hosts, [
      {
        host: "db",
        port: 5432,
        name: "db:5432/licensing",
        tls: true,
        url: "postgres://u:p@db/licensing?sslmode=require"
      }
    ])
  })

  it("has several hosts in their order, each with its own port and the common rest", () => {
    const address = addressOf("postgresql://u:p,%40@one:5433,[::1],three:1/licensing?target_session_attrs=read-write")
    assert.strictEqual(address?.wanted, "read-write")
    assert.strictEqual(address?.name, "one:5433,::1:5432,three:1/licensing")
    assert.deepStrictEqual(
      address?.hosts.map(({ url }) => url),
      [
        "postgresql://u:p,%40@one:5433/licensing?target_session_attrs=read-write",
        "postgresql://u:p,%40@[::1]/licensing?target_session_attrs=read-write",
        "postgresql://u:p,%40@three:1/licensing?target_session_attrs=read-write"
      ]
    )
  })

  it("with several hosts must ask for one that takes writes, except for reports", () => {
    const accepted = [
      "postgres://u@one,two/x?target_session_attrs=read-write",
      "postgres://u@one:1,two:2/x?target_session_attrs=primary&sslmode=verify-full",
      "postgres://u@one/x?target_session_attrs=read-write",
      "postgres://u@one/x?target_session_attrs=any"
    ]
    for (const text of accepted) assert.isTrue(databaseAddress(text), text)
    const replicasOnly = [
      "postgres://u@one,two/x",
      "postgres://u@one,two/x?target_session_attrs=any",
      "postgres://u@one,two/x?target_session_attrs=standby",
      "postgres://u@one/x?target_session_attrs=read-only"
    ]
    for (const text of replicasOnly) {
      assert.isFalse(databaseAddress(text), text)
      assert.isTrue(replicaAddress(text), text)
    }
    const refused = [
      "postgres://u@one,/x?target_session_attrs=read-write",
      "postgres://u@,one/x?target_session_attrs=read-write",
      "postgres://u@one:1:2,two/x?target_session_attrs=read-write",
      "postgres://u@one,two/x?target_session_attrs=prefer-standby",
      "postgres://u@one,two/x?target_session_attrs=read-write&target_session_attrs=any",
      "postgres://u@one,two/x?target_session_attrs=read-write&sslmode=requir",
      "mysql://u@one,two/x?target_session_attrs=read-write"
    ]
    for (const text of refused) assert.isFalse(databaseAddress(text) || replicaAddress(text), text)
  })
})
