import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"

/* Lists as files (docs/decisions/admin.md, "Exports"). */

/** A file. It is streamed. A JSON file is `{"items": […]}`. */
export const exportOf = Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/csv" }))
