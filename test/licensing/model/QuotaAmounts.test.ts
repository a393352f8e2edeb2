/** What an amount uses of a quota, bought credits and overage, and what is left of them. */
import { assert, describe, it } from "@effect/vitest"
import { amountMax, consumeAmount, quotaUsed, remainingOf, takeBack } from "../../../src/licensing/rules/Quota.ts"
import { present } from "../../support/rules/Licenses.ts"

const balance = { max_consumptions: 100, total_consumptions: 60 }
const beyond = { max_consumptions: 100, total_consumptions: 125, credits_used: 20, overage: 5, extra_credits: 4 }

const stepOf = ({ usage, ...beside }: ReturnType<typeof consumeAmount>) => ({ usage: present(usage), ...beside })

describe("a quota", () => {
  it("is used by what bought credits and overage did not cover", () => {
    assert.strictEqual(quotaUsed(beyond), 100)
    assert.strictEqual(remainingOf({ ...beyond, max_consumptions: 130 }), 30)
    assert.strictEqual(remainingOf({ ...beyond, max_consumptions: 90 }), 0)
    assert.strictEqual(remainingOf({ ...balance, rolled_over: 7 }), 47)
    assert.isUndefined(remainingOf({ total_consumptions: 9 }))
  })

  it("leaves room for what is left, bought credits and overage", () => {
    assert.strictEqual(amountMax(balance), 40)
    assert.strictEqual(amountMax({ ...balance, extra_credits: 3, overage_max: 2 }), 45)
    assert.strictEqual(amountMax({ ...beyond, overage_max: 7 }), 6)
    assert.strictEqual(amountMax({ ...beyond, overage_max: 3 }), 4)
    assert.strictEqual(amountMax({ ...balance, overage_max: -1 }), Number.POSITIVE_INFINITY)
    assert.strictEqual(amountMax({ total_consumptions: 9 }), Number.POSITIVE_INFINITY)
  })

  it("changes nothing but its count by an amount within it, or without a limit", () => {
    for (const amount of [39, 40])
      assert.deepStrictEqual(consumeAmount(balance, amount), { usage: { total_consumptions: 60 + amount } })
    assert.deepStrictEqual(consumeAmount({ total_consumptions: 9 }, 5), { usage: { total_consumptions: 14 } })
    assert.deepStrictEqual(takeBack(balance, 20), { usage: { total_consumptions: 40 } })
  })

  it("uses bought credits beyond itself, then overage, and gives them back in the reverse order", () => {
    const start = { ...balance, extra_credits: 10, overage_max: 50 }
    assert.deepStrictEqual(stepOf(consumeAmount(start, 44)), {
      usage: { total_consumptions: 104, credits_used: 4, extra_credits: 6 },
      credits: -4
    })
    const all = consumeAmount(start, 55)
    assert.deepStrictEqual(stepOf(all), {
      usage: { total_consumptions: 115, credits_used: 10, overage: 5 },
      ...{ credits: -10, overage: 5 }
    })
    const used = { ...start, ...all.usage }
    assert.deepStrictEqual(stepOf(takeBack(used, 5)), { usage: { total_consumptions: 110 }, overage: -5 })
    assert.deepStrictEqual(stepOf(takeBack(used, 8)), {
      usage: { total_consumptions: 107, credits_used: 7, extra_credits: 3 },
      ...{ credits: 3, overage: -5 }
    })
    assert.deepStrictEqual(stepOf(takeBack({ ...start, ...consumeAmount(start, 44).usage }, 44)), {
      usage: { total_consumptions: 60, extra_credits: 10 },
      credits: 4
    })
  })
})
