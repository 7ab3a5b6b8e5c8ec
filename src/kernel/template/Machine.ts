import type { Environment } from "minijinja-js"
import { readFile } from "node:fs/promises"

/* The machine that MiniJinja runs in: WebAssembly with a bound on its memory, which is replaced when it has broken down. */

const pageBytes = 65_536

/** The memory of all templates of the process, in octets. A page of 200 orders of a hundred names of full length takes a seventh. */
const mostMemory = 256 * 1024 * 1024

const memorySection = 5

/** Reads an unsigned number in LEB128; answers it and where the next one begins. */
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
 * The code of a module, whose one memory cannot grow beyond so many octets: the memory section is written anew (WebAssembly Core
 * Specification, section 5.5.8). What the module asks for beyond that is refused to it.
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

/** What is used of the runtime's WebAssembly, for which there are no types without those of a browser. */
declare const WebAssembly: {
  readonly compile: (code: Uint8Array) => Promise<object>
  readonly Instance: new(module: object, imports: object) => {
    readonly exports: { readonly memory: { readonly grow: (pages: number) => number } }
  }
  readonly RuntimeError: new() => Error
}

/** What the package exports for bundlers, which put its JavaScript and its WebAssembly together. */
interface Glue {
  readonly Environment: typeof Environment
  readonly __wbg_set_wasm: (exports: object) => void
}

/** The package's way to forget what it would otherwise free, when its object is collected. */
interface Forgettable {
  readonly __destroy_into_raw: () => void
}

/** What runs MiniJinja for all templates of the process. What was made before a restart is of no use after it. */
export interface Machine {
  readonly Environment: typeof Environment
  /** How often the machine was started. */
  readonly starts: number
  /** Whether an exception came out of a machine that broke down: it asked for more memory than it has, or ran out of stack. */
  readonly brokeDown: (cause: unknown) => boolean
  readonly restart: () => void
  /** Gives an environment back that was made after so many starts. */
  readonly release: (environment: Environment, madeAt: number) => void
}

const files = "minijinja-js/dist/bundler/minijinja_js_bg"

const make = async (): Promise<Machine> => {
  const glue = await import(import.meta.resolve(`${files}.js`)) as Glue
  const code = await readFile(new URL(import.meta.resolve(`${files}.wasm`)))
  const module = await WebAssembly.compile(withMostMemory(code, mostMemory))
  let memory: { readonly grow: (pages: number) => number } | undefined
  let starts = 0
  const restart = () => {
    const { exports } = new WebAssembly.Instance(module, { "./minijinja_js_bg.js": glue })
    memory?.grow(0) // detaches the former one, or the package would go on with it
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

/** Loads the machine when it is first asked for. */
export const loadMachine = (): Promise<Machine> => loading ??= make()
