/** What docs/WEBHOOKS.md tells receivers to run, run: in every language that this machine has. */
import { spawnSync } from "node:child_process"
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { headersOf } from "../../src/webhooks/Message.ts"
import { keysOf } from "../../src/webhooks/Secret.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const page = readFileSync(`${root}docs/WEBHOOKS.md`, "utf8")
const folder = mkdtempSync(join(tmpdir(), "licensing-docs-"))
afterAll(() => rmSync(folder, { recursive: true }))

/** The first block of code in a language, from the section about verifying on. */
const block = (language: string): string => {
  const [, code] =
    new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "s").exec(page.slice(page.indexOf("\n## Verifying"))) ?? []
  return code ?? assert.fail(`no block of ${language}`)
}

const secret = "whsec_a-secret-žluťoučký"
const body = Buffer.from(`{"id":"evt_7","type":"license.renewed","sequence":7,"data":{"name":"Žofie 🗝"}}`)
const event = { event_type: "license.renewed", sequence: 7 }
const now = Math.floor(Date.now() / 1_000)
const signed = (key: string, at: number) => headersOf(event, "dlv_1_7", body, [keysOf(key)], at)["x-service-signature"]!
const genuine = signed(secret, now)

/** Signature, body and whether they go together. */
const cases: ReadonlyArray<readonly [string, Buffer, boolean]> = [
  [genuine, body, true],
  [`${genuine},v1=${"0".repeat(64)}`, body, true],
  [genuine.replace("v1=", `v1=${"0".repeat(64)},v1=`), body, true],
  [genuine, Buffer.from(body.toString().replace("7", "8")), false],
  [signed("another secret altogether", now), body, false],
  [signed(secret, now - 400), body, false],
  [signed(secret, now + 400), body, false],
  [genuine.replace("v1=", "v0="), body, false],
  [`t=${now}`, body, false],
  ["", body, false]
]

// Programs read one case a line: secret, delivery id, signature and body, each in base64; they write true or false.
const input = cases
  .map(([signature, body]) =>
    [secret, "dlv_1_7", signature, body].map((part) => Buffer.from(part).toString("base64")).join(" ")
  )
  .join("\n")

const write = (name: string, text: string) => writeFileSync(join(folder, name), text)

const answersOf = (command: string, args: ReadonlyArray<string>) => {
  const { error, status, stderr, stdout } = spawnSync(command, args, {
    cwd: folder,
    input: `${input}\n`,
    encoding: "utf8"
  })
  if ((error as NodeJS.ErrnoException | undefined)?.code === "ENOENT") return undefined
  assert.strictEqual(status, 0, stderr)
  return stdout
    .trim()
    .split("\n")
    .map((line) => line.trim().toLowerCase() === "true")
}

const expected = cases.map(([, , holds]) => holds)

/** Here every machine can run it, or this one just can not. */
const holds = (answers: ReadonlyArray<boolean> | undefined) => assert.deepStrictEqual(answers ?? expected, expected)

describe("docs/WEBHOOKS.md verifies in", () => {
  it("TypeScript", () => {
    copyFileSync(`${root}src/webhooks/VerifyWebhook.ts`, join(folder, "VerifyWebhook.ts"))
    write("package.json", `{ "type": "module" }`)
    write("verify.ts", block("ts"))
    write(
      "main.ts",
      `import { readFileSync } from "node:fs"
      import { verify } from "./verify.ts"
      for (const line of readFileSync(0, "utf8").trim().split("\\n")) {
        const [secret, id, signature, body] = line.split(" ").map((part) => Buffer.from(part, "base64"))
        console.log(verify(secret.toString(), { "X-Service-Delivery-ID": id.toString(), "X-Service-Signature": signature.toString() }, body))
      }`
    )
    assert.deepStrictEqual(answersOf(process.execPath, ["main.ts"]), expected)
  })

  it("Python", () => {
    write(
      "main.py",
      `${block("python")}
import base64, sys
for line in sys.stdin.read().rstrip("\\n").split("\\n"):
    secret, delivery, signature, body = [base64.b64decode(part) for part in line.split(" ")]
    print(verify(secret.decode(), delivery.decode(), signature.decode(), body))
`
    )
    holds(answersOf("python3", ["main.py"]))
  })

  it("Go", { timeout: 120_000 }, () => {
    write("verify.go", block("go"))
    write(
      "main.go",
      `package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		parts := [][]byte{}
		for _, part := range strings.Split(lines.Text(), " ") {
			decoded, _ := base64.StdEncoding.DecodeString(part)
			parts = append(parts, decoded)
		}
		fmt.Println(verify(string(parts[0]), string(parts[1]), string(parts[2]), parts[3]))
	}
}
`
    )
    holds(answersOf("go", ["run", "verify.go", "main.go"]))
  })

  it("Java", { timeout: 120_000 }, () => {
    const [imports = "", verifier = ""] = block("java").split(/(?=final class)/)
    write(
      "Main.java",
      `${imports}
import java.util.Base64;
import java.util.Scanner;

public class Main {
  public static void main(String[] args) throws Exception {
    Scanner lines = new Scanner(System.in);
    while (lines.hasNextLine()) {
      String[] parts = lines.nextLine().split(" ", -1);
      byte[][] decoded = new byte[4][];
      for (int i = 0; i < 4; i++) decoded[i] = Base64.getDecoder().decode(parts[i]);
      System.out.println(WebhookVerifier.verify(new String(decoded[0], "UTF-8"), new String(decoded[1]), new String(decoded[2]), decoded[3]));
    }
  }
}
${verifier}`
    )
    holds(answersOf("java", ["Main.java"]))
  })

  it("Ruby", () => {
    write(
      "main.rb",
      `${block("ruby")}
require "base64"
$stdin.each_line(chomp: true) do |line|
  secret, id, signature, body = line.split(" ", -1).map { |part| Base64.decode64(part) }
  puts verify(secret, id, signature, body)
end
`
    )
    holds(answersOf("ruby", ["main.rb"]))
  })

  it("PHP", () => {
    write(
      "main.php",
      `<?php
${block("php")}
while (($line = fgets(STDIN)) !== false) {
    [$secret, $id, $signature, $body] = array_map('base64_decode', explode(' ', rtrim($line, "\\n")));
    echo verify($secret, $id, $signature, $body) ? 'true' : 'false', "\\n";
}
`
    )
    holds(answersOf("php", ["main.php"]))
  })
})
