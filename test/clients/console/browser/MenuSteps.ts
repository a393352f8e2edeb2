/** A menu, used with the keyboard. */
import { assert } from "@effect/vitest"
import type { Person } from "./Browser.ts"

const menuLengthMax = 8

/** The text of what has the focus. */
export const focused = (person: Person) => person.page.evaluate("document.activeElement.textContent")

/** Moves through an open menu with the arrows. */
export const stepTo = async (person: Person, action: string) => {
  // The browser tells later that the menu is open; only then its first action has the focus.
  await person.page.locator("[popover]:popover-open :focus").waitFor()
  for (let presses = 0; (await focused(person)) !== action; presses++) {
    assert.isBelow(presses, menuLengthMax)
    await person.press("ArrowDown")
  }
}
