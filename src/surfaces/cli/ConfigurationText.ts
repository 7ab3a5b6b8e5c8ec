import type { configKeyObject } from "../../operations/operator/objects/SettingObjects.ts"
import type { Rendered } from "./Rendered.ts"
import { renderTable } from "./TextTable.ts"

const valueText = (value: ReturnType<typeof configKeyObject>["value"]): string =>
  value === undefined ? "" : typeof value === "object" ? `[${value.join(", ")}]` : String(value)

/** Renders `config show` for people. */
export const renderKeys = (items: ReadonlyArray<ReturnType<typeof configKeyObject>>): Rendered =>
  renderTable(
    ["key", "source", "value"],
    items.map(({ key, source, value }) => [key, source, valueText(value)]),
    items.length
  )
