/** Which id a machine has: a function of what is asked of it, so that a test can be any machine. */
import { checkProduct, type MachineIdOptions, saltedId } from "./MachineText.ts"

/** What is asked of the machine. */
export interface Machine {
  readonly platform: string
  /** At most 64 kB of a file; undefined if there is none, or it cannot be read. */
  readonly read: (path: string) => Promise<string | undefined>
  /** What a program prints, within five seconds. */
  readonly run: (program: string, args: ReadonlyArray<string>) => Promise<string>
  readonly environment: (name: string) => string | undefined
  readonly hostname: () => string
}

export const machineIdOf = async ({ product }: MachineIdOptions, machine: Machine): Promise<string> => {
  checkProduct(product)
  const { id, source } = await rawIdOf(machine)
  return saltedId(source, id, product)
}

interface RawId {
  readonly source: "windows" | "macos" | "linux" | "freebsd" | "container"
  readonly id: string
}

const uuid = "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"

const rawIdOf = async (machine: Machine): Promise<RawId> => {
  switch (machine.platform) {
    case "win32":
      return { source: "windows", id: await windowsId(machine) }
    case "darwin":
      return { source: "macos", id: await macosId(machine) }
    case "linux":
    case "android":
      return linuxId(machine)
    case "freebsd":
      return { source: "freebsd", id: found(await machine.read("/etc/hostid"), uuid, "/etc/hostid has no id") }
    default:
      throw failure(`${machine.platform} has no id that is known`)
  }
}

const windowsId = async ({ environment, run }: Machine): Promise<string> => {
  const key = "HKLM\\SOFTWARE\\Microsoft\\Cryptography"
  const program = `${environment("SystemRoot") ?? "C:\\Windows"}\\System32\\reg.exe`
  // /reg:64: a 32-bit process would see another part of the registry.
  const printed = await asked(() => run(program, ["query", key, "/v", "MachineGuid", "/reg:64"]), program)
  return found(printed, `MachineGuid\\s+REG_SZ\\s+(${uuid})`, `${key} has no MachineGuid`)
}

const macosId = async ({ run }: Machine): Promise<string> => {
  const program = "/usr/sbin/ioreg"
  const printed = await asked(() => run(program, ["-rd1", "-c", "IOPlatformExpertDevice"]), program)
  return found(printed, `"IOPlatformUUID"\\s*=\\s*"(${uuid})"`, "ioreg names no IOPlatformUUID")
}

const linuxId = async (machine: Machine): Promise<RawId> => {
  if (await isContainer(machine)) return { source: "container", id: await containerId(machine) }
  const text = (await machine.read("/etc/machine-id")) ?? (await machine.read("/var/lib/dbus/machine-id"))
  return {
    source: "linux",
    id: found(text, "^[0-9a-f]{32}$", "/etc/machine-id has no id: run systemd-machine-id-setup")
  }
}

const isContainer = async ({ environment, read }: Machine): Promise<boolean> =>
  environment("container") !== undefined ||
  environment("KUBERNETES_SERVICE_HOST") !== undefined ||
  (await read("/.dockerenv")) !== undefined ||
  (await read("/run/.containerenv")) !== undefined ||
  /docker|kubepods|containerd|libpod|\/lxc\//.test((await read("/proc/1/cgroup")) ?? "")

/** As Docker, Podman, containerd and Kubernetes name the folders and groups of a container. */
const idOfContainer = /(?:containers|docker|libpod|kubepods)[^ \n]*[-/:]([0-9a-f]{64})/

/** Of this container, because /etc/machine-id is the image's: the same in all containers of it. */
const containerId = async ({ hostname, read }: Machine): Promise<string> => {
  for (const path of ["/proc/self/mountinfo", "/proc/self/cgroup"]) {
    const [, id] = idOfContainer.exec((await read(path)) ?? "") ?? []
    if (id !== undefined) return id
  }
  const name = hostname()
  if (name === "" || name === "localhost") throw failure("this container has neither an id nor a host name")
  return name
}

const asked = async (ask: () => Promise<string>, program: string): Promise<string> => {
  try {
    return await ask()
  } catch {
    throw failure(`${program} could not be run, or took more than five seconds`)
  }
}

const found = (text: string | undefined, pattern: string, problem: string): string => {
  const [all, group] = new RegExp(pattern, "m").exec(text ?? "") ?? []
  // Images and machines that were never set up have ids of one digit.
  if (all === undefined || /^(.)\1*$/.test((group ?? all).replaceAll("-", ""))) throw failure(problem)
  return (group ?? all).toLowerCase()
}

const failure = (problem: string): Error =>
  new Error(`machineId: ${problem}. Give the kit a fingerprint of your own, a random text that the application keeps.`)
