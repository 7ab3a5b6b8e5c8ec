import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import type { Exported } from "../../operations/operator/Exports.ts"

/** A file that is sent or printed while it is read. The document calls it CSV; a JSON file is `{"items": […]}`. */
export const FileOutput: Schema.Codec<Exported, unknown> = Schema.String.pipe(
  HttpApiSchema.asText({ contentType: "text/csv" })
) as unknown as Schema.Codec<Exported, unknown>

/** Whether an act answers a file. */
export const isFile = (output: Schema.Top): boolean => output === (FileOutput as Schema.Top)
