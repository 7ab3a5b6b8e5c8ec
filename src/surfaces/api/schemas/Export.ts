import { HttpApiSchema } from "@effect/platform"
import { Schema } from "effect"

/* Lists as files (docs/decisions/admin.md, "Exports"). */

/** The format of a file. */
export const exported = {
  format: Schema.optional(
    Schema.Literal("csv", "json").annotations({
      jsonSchema: { type: "string", enum: ["csv", "json"], default: "csv" }
    })
  )
}

/** A file. It is streamed. A JSON file is `{"items": […]}`. */
export const exportOf = HttpApiSchema.Text({ contentType: "text/csv" })
