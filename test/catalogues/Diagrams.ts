import { instance } from "@viz-js/viz"
import { readdirSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { stateMachines } from "./StateMachines.ts"

/* The diagrams of the documents, as SVG. Graphviz lays them out from the texts in docs/pictures and from the code. */

const folder = resolve(import.meta.dirname, "../../docs/pictures")

/** Colours and letters come from the style of each picture, so that they fit a light and a dark page. */
const style = `
  .paper { fill: #f6f6f3 }
  text { fill: #1c2124; font-family: Helvetica, Arial, "Liberation Sans", sans-serif }
  .cluster > text { fill: #575d61 }
  .node text { font-size: 13px }
  .edge text { font-size: 11px; fill: #575d61 }
  .cluster > path, .cluster > polygon { fill: #eeeeea; stroke: #dcdcd5 }
  .node > path, .node > polygon, .node > ellipse { fill: #ffffff; stroke: #0b6b62 }
  .outside > path, .outside > polygon { stroke: #b9b9b0; stroke-dasharray: 4 3 }
  .store > path, .last > path { fill: #e2f0ed }
  .bad > path { fill: #fbe9e6; stroke: #a82419 }
  .edge > path { stroke: #575d61 }
  .edge > polygon { fill: #575d61; stroke: #575d61 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #14171a }
    text { fill: #e6e8e6 }
    .cluster > text, .edge text { fill: #a3abb0 }
    .cluster > path, .cluster > polygon { fill: #1b1f23; stroke: #2e343a }
    .node > path, .node > polygon, .node > ellipse { fill: #101315; stroke: #5fc7b8 }
    .outside > path, .outside > polygon { stroke: #4a525a }
    .store > path, .last > path { fill: #18322f }
    .bad > path { fill: #3a1a17; stroke: #ff9a8d }
    .edge > path { stroke: #a3abb0 }
    .edge > polygon { fill: #a3abb0; stroke: #a3abb0 }
  }
`

/** The layout has larger letters than the pictures, so that there is room for the letters of any system. */
const attributes = {
  graphAttributes: {
    bgcolor: "transparent",
    fontname: "Helvetica",
    fontsize: 13,
    labeljust: "l",
    nodesep: 0.35,
    pad: 0.2,
    ranksep: 0.5,
    style: "rounded"
  },
  nodeAttributes: { fontname: "Helvetica", fontsize: 14, margin: "0.2,0.1", shape: "box", style: "rounded" },
  edgeAttributes: { arrowsize: 0.7, fontname: "Helvetica", fontsize: 13 }
}

/** Returns the picture that a text for Graphviz describes. Equal texts give equal pictures. */
const drawn = async (text: string): Promise<string> => {
  const svg = (await instance()).renderString(text, { format: "svg", ...attributes })
  const { 0: root = "", 1: width, 2: height } = /<svg width="(\d+)pt" height="(\d+)pt"[^>]*>/s.exec(svg) ?? []
  const inner = svg.slice(svg.indexOf(root) + root.length)
    .replaceAll(/<!--.*?-->\n?/gs, "")
    .replaceAll(/<title>.*?<\/title>\n?/gs, "")
    .replaceAll(/ (?:font-family="[^"]*"|(?:fill|stroke)="(?!none|transparent)[^"]*")/g, "")
  const box = /viewBox="[^"]*"/.exec(root)?.[0] ?? ""
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ${box}>
<style>${style}</style>
<rect class="paper" width="100%" height="100%" rx="6"/>
${inner.trim()}
`
}

const ofTexts = readdirSync(folder).filter((name) => name.endsWith(".dot")).map((name) =>
  [name.replace(/\.dot$/, ""), () => readFileSync(join(folder, name), "utf8")] as const
)

/** The pictures, each with the function that draws it. */
export const diagrams: { readonly [picture: string]: () => Promise<string> } = Object.fromEntries(
  [...ofTexts, ...Object.entries(stateMachines)].map(([name, text]) => [
    `docs/pictures/${name}.svg`,
    () => drawn(text())
  ])
)
