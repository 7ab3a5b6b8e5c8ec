import type { Environment } from "minijinja-js"
import { readFile } from "node:fs/promises"
import { createRequire } from "node:module"

/* Runs MiniJinja as WebAssembly with limited memory. If it breaks down, it is started again. */

const pageBytes = 65_536

/**
 * The most memory that all templates of the process may use together, in octets. A page of 200 rows with a hundred
 * names of full length needs a seventh of this memory.
 */
const mostMemory = 256 * 1024 * 1024

const memorySection = 5

/** Reads an unsigned number in LEB128. Returns the number, and the position that follows it. */
const readNumber = (code: Uint8Array, at: number): readonly [value: number, next: number] => {
  let [value, scale] = [0, 1]
  for (;; at++) {
    const octet = code[at] ?? 0
    value += (octet & 0x7f) * scale
    scale *= 128
    if (octet < 0x80) return [value, at + 1]
  }
}

const writeNumber = (value: number): ReadonlyArray<number> =>
  value < 0x80 ? [value] : [value % 0x80 | 0x80, ...writeNumber(Math.floor(value / 0x80))]

/**
 * Changes the code of a module so that its memory cannot grow beyond `octets`. Only the memory section changes
 * (WebAssembly Core Specification, section 5.5.8). If the module requests more memory, this request is refused.
 */
const withMostMemory = (code: Uint8Array, octets: number): Uint8Array<ArrayBuffer> => {
  for (let at = 8; at < code.length;) {
    const [size, inside] = readNumber(code, at + 1)
    if (code[at] === memorySection) {
      const [least] = readNumber(code, inside + 2)
      const limits = [1, 1, ...writeNumber(least), ...writeNumber(octets / pageBytes)]
      return new Uint8Array(Buffer.concat([
        code.subarray(0, at),
        Uint8Array.from([memorySection, ...writeNumber(limits.length), ...limits]),
        code.subarray(inside + size)
      ]))
    }
    at = inside + size
  }
  throw new Error("the module has no memory of its own")
}

/** The part of the runtime's WebAssembly that is used here. Its types are only part of the types for browsers. */
declare const WebAssembly: {
  readonly compile: (code: Uint8Array) => Promise<object>
  readonly Instance: new(module: object, imports: object) => {
    readonly exports: { readonly memory: { readonly grow: (pages: number) => number } }
  }
  readonly RuntimeError: new() => Error
}

/** What the package exports for bundlers. Bundlers combine the JavaScript and the WebAssembly of the package. */
interface Glue {
  readonly Environment: typeof Environment
  readonly __wbg_set_wasm: (exports: object) => void
}

/**
 * Prevents the package from freeing an object at garbage collection. This is for objects that were made before a
 * restart, because their memory is gone.
 */
interface Forgettable {
  readonly __destroy_into_raw: () => void
}

/** Runs MiniJinja for all templates of the process. Objects that were made before a restart cannot be used after it. */
export interface Machine {
  readonly Environment: typeof Environment
  /** How often the machine was started. */
  readonly starts: number
  /**
   * Returns whether an exception means that the machine has broken down: it requested more memory than it may have, or
   * ran out of stack.
   */
  readonly brokeDown: (cause: unknown) => boolean
  readonly restart: () => void
  /**
   * Frees an environment, unless the machine was restarted in the meantime. `madeAt` is the number of starts at the
   * time when the environment was made.
   */
  readonly release: (environment: Environment, madeAt: number) => void
}

const files = "minijinja-js/dist/bundler/minijinja_js_bg"
const load = createRequire(import.meta.url)

const make = async (): Promise<Machine> => {
  // `import()` within a bundle that is loaded from stored code makes Node print a warning.
  const glue = load(`${files}.js`) as Glue
  const code = await readFile(load.resolve(`${files}.wasm`))
  const module = await WebAssembly.compile(withMostMemory(code, mostMemory))
  let memory: { readonly grow: (pages: number) => number } | undefined
  let starts = 0
  const restart = () => {
    const { exports } = new WebAssembly.Instance(module, { "./minijinja_js_bg.js": glue })
    memory?.grow(0) // detaches the old memory, because otherwise the package would go on using it
    memory = exports.memory
    glue.__wbg_set_wasm(exports)
    starts++
  }
  restart()
  return {
    Environment: glue.Environment,
    get starts() {
      return starts
    },
    brokeDown: (cause) => cause instanceof WebAssembly.RuntimeError || cause instanceof RangeError,
    restart,
    release: (environment, madeAt) =>
      madeAt === starts ? environment.free() : (environment as unknown as Forgettable).__destroy_into_raw()
  }
}

let loading: Promise<Machine> | undefined

/** Loads the machine at the first call. */
export const loadMachine = (): Promise<Machine> => loading ??= make()
