/** What was done, in words; and what a refused call tried. */
import type { Activity } from "../../../insight/activities/Activity.ts"
import { sentenceOf } from "../parts/Format.ts"
import { wordsOfRefusal } from "./RefusalWords.ts"

/** By action: what was done, and what was tried where the service may refuse it. */
const words: Readonly<Record<string, readonly [done: string, tried?: string]>> = {
  "license.create": ["Issued"],
  "license.update": ["Edited"],
  "license.suspend": ["Suspended"],
  "license.reinstate": ["Reinstated"],
  "license.revoke": ["Revoked"],
  "license.renew": ["Extended"],
  "license.renew_maintenance": ["Maintenance renewed"],
  "license.announce_maintenance_end": ["Reminded of the end of maintenance"],
  "license.end_maintenance": ["Maintenance ended"],
  "license.transfer": ["Transferred"],
  "license.change_policy": ["Policy changed"],
  "license.rotate_key": ["Key replaced"],
  "license.assign_feature": ["Feature changed"],
  "license.remove_feature": ["Feature removed"],
  "license.reset_usage": ["Usage changed"],
  "license.activate": ["Device activated", "Activation"],
  "license.deactivate": ["Device deactivated", "Deactivation"],
  "license.deactivate_device": ["Device deactivated", "Deactivation"],
  "license.list_devices": ["Devices listed", "List of devices"],
  "license.validate": ["Validated", "Validation"],
  "license.check": ["Checked", "Check"],
  "license.issue_offline": ["Offline file issued", "Offline file"],
  "license.start_grace_period": ["Grace period began"],
  "license.expire": ["Expired"],
  "license.expire_feature": ["Feature expired"],
  "license.announce_expiry": ["Reminded of the expiry"],
  "usage.consume": ["Used", "Use"],
  "usage.reverse": ["Use taken back", "Taking back a use"],
  "usage.close_period": ["Period of a quota ended"],
  "usage.start_overage": ["Overage began"],
  "usage.reach_threshold": ["80 % of the quota used"],
  "usage.exhaust": ["Quota used up"],
  "lease.check_out": ["Floating seat taken", "Floating seat"],
  "lease.check_in": ["Floating seat given back", "Giving a seat back"],
  "lease.heartbeat": ["Heartbeat", "Heartbeat"],
  "lease.expire": ["Floating seat ended"],
  "device.reset": ["Device reset"],
  "device.blacklist": ["Device blocked"],
  "device.unblacklist": ["Device unblocked"],
  "device.expire": ["Device expired"],
  "custom_field_value.set": ["Custom field set"],
  "custom_field_value.clear": ["Custom field cleared"],
  "portal.sign_in": ["Customer signed in"],
  "webhook.rotate_secret": ["Secret of a webhook replaced"]
}

const pastOf = (verb: string) => (verb === "cancel" ? "canceled" : verb.endsWith("e") ? `${verb}d` : `${verb}ed`)

/** What was done, beside records of all kinds. */
export const nameOfAction = (action: string): string => {
  const [noun = "", verb = ""] = action.split(".")
  const [done] = words[action] ?? []
  if (done === undefined) return sentenceOf(`${noun} ${pastOf(verb)}`)
  return noun === "license" && !done.includes(" ") ? `License ${done.toLowerCase()}` : done
}

export const nameOfActivity = ({ action, result_class }: Activity): string =>
  (result_class === "refused" ? words[action]?.[1] : undefined) ?? nameOfAction(action)

export const sentenceOfAction = ({ action, code, result_class }: Activity): string => {
  const [done, tried] = words[action] ?? [sentenceOf(action)]
  if (result_class !== "refused") return done
  return code === undefined
    ? `${tried ?? done} refused`
    : `${tried ?? done} refused: ${wordsOfRefusal(code).replace(/^(?:The|All|A|No) /, (word) => word.toLowerCase())}`
}
