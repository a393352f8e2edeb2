/** Java's own HTTP client, which offers an upgrade with each request over plain HTTP. */
import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"

const program = `
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class Post {
  public static void main(String[] arguments) throws Exception {
    HttpClient client = HttpClient.newHttpClient();
    for (int index = 0; index < 3; index++) {
      String body = "{\\"name\\":\\"J\\",\\"code\\":\\"java-" + index + "\\"}";
      HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[0]))
        .header("Authorization", arguments[1])
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString(body))
        .build();
      System.out.println(client.send(request, HttpResponse.BodyHandlers.ofString()).statusCode());
    }
  }
}
`

const runJava = (...args: ReadonlyArray<string>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "licensing-java-"))
      writeFileSync(join(folder, "Post.java"), program)
      return folder
    }),
    (folder) =>
      Effect.callback<string>((resume) => {
        const child = spawn("java", [join(folder, "Post.java"), ...args], { stdio: ["ignore", "pipe", "pipe"] })
        let output = ""
        for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk))
        child.on("close", () => resume(Effect.succeed(output)))
        return Effect.sync(() => child.kill("SIGKILL"))
      }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )

const { status } = spawnSync("java", ["--list-modules"], { encoding: "utf8" })
const missing = status === 0 ? undefined : "there is no java on the PATH"

layer(TestServer.layer, { excludeTestServices: true, timeout: 60_000 })("Java's HttpClient", (it) => {
  it.effect("has its bodies read, one request after the other", (context) =>
    Effect.gen(function* () {
      if (missing !== undefined) return context.skip(missing)
      const { adminToken, baseUrl } = yield* TestServer
      const output = yield* runJava(`${baseUrl}/api/v1/products`, `Bearer ${adminToken}`)
      assert.strictEqual(output, "201\n201\n201\n")
    })
  )
})
