// A stand-in for the module `electron`: a window prints what its page shows, and has LICENSE_KEY typed into its form.
import { EventEmitter } from "node:events"
import { readFileSync } from "node:fs"
import process from "node:process"
import { createContext, runInContext } from "node:vm"

const { LICENSE_KEY, USER_DATA } = process.env
const handlers = new Map()
const renderer = new EventEmitter()
const windows = []

export const app = { whenReady: async () => {}, getPath: () => USER_DATA }
export const powerMonitor = new EventEmitter()
export const ipcMain = { handle: (name, handler) => handlers.set(name, handler) }

const flipped = (bytes) => Buffer.from(bytes.map((byte) => byte ^ 0x5a))
export const safeStorage = {
  encryptStringAsync: async (text) => flipped(Buffer.from(text)),
  decryptStringAsync: async (sealed) => ({ shouldReEncrypt: false, result: flipped(sealed).toString() })
}

// What passes between the processes is copied, as in Electron.
const ipcRenderer = {
  invoke: async (name, ...given) => structuredClone(await handlers.get(name)({}, ...structuredClone(given))),
  on: (name, listener) => renderer.on(name, listener)
}

export class BrowserWindow {
  static getAllWindows = () => windows
  webContents = { send: (name, ...given) => renderer.emit(name, {}, ...structuredClone(given)) }
  #preload

  constructor({ webPreferences: { preload } }) {
    this.#preload = readFileSync(preload, "utf8")
    windows.push(this)
  }

  async loadFile(path) {
    const exposed = {}
    const contextBridge = { exposeInMainWorld: (name, api) => Object.assign(exposed, { [name]: api }) }
    const required = { electron: { contextBridge, ipcRenderer } }
    new Function("require", this.#preload)((name) => required[name])
    const html = readFileSync(path, "utf8")
    const [, script] = /<script>(.*?)<\/script>/s.exec(html)
    const elements = Object.fromEntries(Array.from(html.matchAll(/ id="(\w+)"/g), ([, id]) => [id, {}]))
    Object.defineProperty(elements.said, "textContent", { set: (text) => console.log(text) })
    runInContext(script, createContext({ ...elements, ...exposed }))
    powerMonitor.emit("resume")
    if (LICENSE_KEY === undefined) return
    elements.key.value = LICENSE_KEY
    elements.form.onsubmit()
  }
}
