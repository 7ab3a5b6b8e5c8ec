import * as HttpApiSchema from "@effect/platform/HttpApiSchema"

/* Lists as files (docs/decisions/admin.md, "Exports"). */

/** A file. It is streamed. A JSON file is `{"items": […]}`. */
export const exportOf = HttpApiSchema.Text({ contentType: "text/csv" })
