import { HttpApiSchema } from "@effect/platform"

/* Lists as files (docs/decisions/admin.md, "Exports"). */

/** A file. It is streamed. A JSON file is `{"items": […]}`. */
export const exportOf = HttpApiSchema.Text({ contentType: "text/csv" })
