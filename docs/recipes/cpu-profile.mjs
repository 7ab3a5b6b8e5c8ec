// Takes a CPU profile of a process whose inspector listens on this machine (docs/operate/debugging.md, "A CPU profile of a running server").
// node docs/recipes/cpu-profile.mjs PORT SECONDS FILE
import { writeFileSync } from "node:fs"
import { basename } from "node:path"
import { setTimeout } from "node:timers/promises"

const [port, seconds, file] = process.argv.slice(2)
if (file === undefined) {
  process.stderr.write("usage: node cpu-profile.mjs PORT SECONDS FILE\n")
  process.exit(2)
}

// The inspector needs a moment after the signal.
const targets = async (tries = 50) => {
  try {
    return await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()
  } catch (error) {
    if (tries === 0) throw error
    await setTimeout(100)
    return targets(tries - 1)
  }
}

const [{ webSocketDebuggerUrl }] = await targets()
const socket = new WebSocket(webSocketDebuggerUrl)
await new Promise((done, fail) => {
  socket.addEventListener("open", done)
  socket.addEventListener("error", () => fail(new Error(`${webSocketDebuggerUrl} takes no connection`)))
})

const waiting = new Map()
socket.addEventListener("message", ({ data }) => {
  const { id, result, error } = JSON.parse(data)
  const waits = waiting.get(id)
  if (error === undefined) waits?.done(result)
  else waits?.fail(new Error(error.message))
})
const ask = (method) =>
  new Promise((done, fail) => {
    const id = waiting.size + 1
    waiting.set(id, { done, fail })
    socket.send(JSON.stringify({ id, method }))
  })

await ask("Profiler.enable")
await ask("Profiler.start")
await setTimeout(Number(seconds) * 1000)
const { profile } = await ask("Profiler.stop")
await ask("Profiler.disable")
socket.close()
writeFileSync(file, JSON.stringify(profile))

// The time between two samples belongs to the function on top of the stack.
const places = new Map(profile.nodes.map(({ callFrame: { functionName, lineNumber, url }, id }) => [
  id,
  `${functionName || "(anonymous)"} ${url === "" ? "" : `${basename(url)}:${lineNumber + 1}`}`.trim()
]))
const spent = new Map()
profile.samples.forEach((id, index) => {
  const place = places.get(id)
  spent.set(place, (spent.get(place) ?? 0) + profile.timeDeltas[index])
})
const all = profile.endTime - profile.startTime
for (const [place, micros] of [...spent].sort(([, one], [, other]) => other - one).slice(0, 15)) {
  process.stdout.write(`${(100 * micros / all).toFixed(1).padStart(5)} %  ${place}\n`)
}
