/**
 * Runs the code that docs/WEBHOOKS.md gives to receivers on a real delivery, in every language installed on this
 * machine.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { TestContext } from "vitest"
import { Delivery } from "../../../src/ledger/webhooks/Delivery.ts"
import { headersOf } from "../../../src/ledger/webhooks/Message.ts"
import { keysOf } from "../../../src/ledger/webhooks/Secret.ts"
import { appendEvent, layerWebhooks, makeEndpoint, makeReceiver, untilSettled } from "../../support/http/Webhooks.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const page = readFileSync(`${root}docs/WEBHOOKS.md`, "utf8")
/** The first block of code in a language, from the section about verifying on. */
const block = (language: string): string => {
  const [, code] =
    new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "s").exec(page.slice(page.indexOf("\n## Verifying"))) ?? []
  return code ?? assert.fail(`no block of ${language}`)
}

const secret = "whsec_a-secret-žluťoučký"

interface Case {
  readonly id: string
  readonly signature: string
  readonly body: Buffer
  readonly isGenuine: boolean
}

/** A folder for the programs, and their input: a delivery as a receiver got it, and forged variants of it. */
class ProgramInput extends Context.Service<
  ProgramInput,
  { readonly folder: string; readonly cases: ReadonlyArray<Case> }
>()("licensing/test/Workshop") {
  static readonly layer = Layer.effect(
    ProgramInput,
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-docs-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true }))
      )
      const receiver = yield* makeReceiver
      const { webhook } = yield* makeEndpoint(receiver.url, { secret })
      const sequence = yield* appendEvent({ event_type: "license.renewed", metadata: { name: "Žofie 🗝", days: 30 } })
      yield* (yield* Delivery).pass
      const { body, headers } = yield* receiver.next
      yield* untilSettled(webhook.id)
      const id = String(headers["x-service-delivery-id"])
      const signature = String(headers["x-service-signature"])
      return { folder, cases: casesOf({ id, signature, body, isGenuine: true }, sequence) }
    })
  )
}

const casesOf = (genuine: Case, sequence: number): ReadonlyArray<Case> => {
  const { body, id, signature } = genuine
  const sentAt = Number(/t=(\d+)/.exec(signature)?.[1])
  const signed = (key: string, at: number) =>
    headersOf({ event_type: "license.renewed", sequence }, id, body, [keysOf(key)], at)["x-service-signature"]!
  const forgedSignature = "0".repeat(64)
  return [
    genuine,
    { ...genuine, signature: `${signature},v1=${forgedSignature}` },
    { ...genuine, signature: signature.replace("v1=", `v1=${forgedSignature},v1=`) },
    { ...genuine, body: Buffer.from(body.toString().replace("30", "31")), isGenuine: false },
    { ...genuine, id: id.replace(/.$/, "x"), isGenuine: false },
    ...[
      signed("another secret altogether", sentAt),
      signed(secret, sentAt - 400),
      signed(secret, sentAt + 400),
      signature.replace("v1=", "v0="),
      `t=${sentAt}`,
      ""
    ].map((signature) => ({ ...genuine, signature, isGenuine: false }))
  ]
}

/**
 * Programs read one case per line: secret, delivery id, signature and body, each in base64; they print true or false.
 */
const inputOf = (cases: ReadonlyArray<Case>) =>
  cases
    .map(({ body, id, signature }) =>
      [secret, id, signature, body].map((part) => Buffer.from(part).toString("base64")).join(" ")
    )
    .join("\n")

/** The files of a program, and the commands that build and run it. */
interface Program {
  readonly files: { readonly [name: string]: string }
  readonly commands: ReadonlyArray<readonly [command: string, ...args: ReadonlyArray<string>]>
}

/**
 * A program's verdicts must equal the expected ones. A machine without the language's tools skips the test and reports
 * that.
 */
const verifyCases = Effect.fnUntraced(function* ({ skip }: TestContext, { commands, files }: Program) {
  const { cases, folder } = yield* ProgramInput
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  let output = ""
  for (const [command, ...args] of commands) {
    const { error, status, stderr, stdout } = spawnSync(command, args, {
      cwd: folder,
      input: `${inputOf(cases)}\n`,
      encoding: "utf8"
    })
    if ((error as NodeJS.ErrnoException | undefined)?.code === "ENOENT") skip(`this machine has no ${command}`)
    assert.strictEqual(status, 0, stderr)
    output = stdout
  }
  const answers = output
    .trim()
    .split("\n")
    .map((line) => line.trim().toLowerCase() === "true")
  assert.deepStrictEqual(
    answers,
    cases.map(({ isGenuine }) => isGenuine)
  )
})

// The programs read the machine's clock, so the sending node uses it too.
layer(ProgramInput.layer.pipe(Layer.provide(layerWebhooks())), { excludeTestServices: true })(
  "docs/WEBHOOKS.md verifies in",
  (it) => {
    it.effect("TypeScript", (context) =>
      verifyCases(context, {
        commands: [[process.execPath, "main.ts"]],
        files: {
          "package.json": `{ "type": "module" }`,
          "VerifyWebhook.ts": readFileSync(`${root}src/ledger/webhooks/VerifyWebhook.ts`, "utf8"),
          "verify.ts": block("ts"),
          "main.ts": `import { readFileSync } from "node:fs"
      import { verify } from "./verify.ts"
      for (const line of readFileSync(0, "utf8").trim().split("\\n")) {
        const [secret, id, signature, body] = line.split(" ").map((part) => Buffer.from(part, "base64"))
        console.log(verify(secret.toString(), { "X-Service-Delivery-ID": id.toString(), "X-Service-Signature": signature.toString() }, body))
      }`
        }
      })
    )

    it.effect("Python", (context) =>
      verifyCases(context, {
        commands: [["python3", "main.py"]],
        files: {
          "main.py": `${block("python")}
import base64, sys
for line in sys.stdin.read().rstrip("\\n").split("\\n"):
    secret, delivery, signature, body = [base64.b64decode(part) for part in line.split(" ")]
    print(verify(secret.decode(), delivery.decode(), signature.decode(), body))
`
        }
      })
    )

    it.effect(
      "Go",
      (context) =>
        verifyCases(context, {
          commands: [["go", "run", "verify.go", "main.go"]],
          files: {
            "verify.go": block("go"),
            "main.go": `package main

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
          }
        }),
      120_000
    )

    it.effect(
      "Java",
      (context) => {
        const [imports = "", verifier = ""] = block("java").split(/(?=final class)/)
        return verifyCases(context, {
          commands: [["java", "Main.java"]],
          files: {
            "Main.java": `${imports}
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
          }
        })
      },
      120_000
    )

    it.effect("Ruby", (context) =>
      verifyCases(context, {
        commands: [["ruby", "main.rb"]],
        files: {
          "main.rb": `${block("ruby")}
require "base64"
$stdin.each_line(chomp: true) do |line|
  secret, id, signature, body = line.split(" ", -1).map { |part| Base64.decode64(part) }
  puts verify(secret, id, signature, body)
end
`
        }
      })
    )

    it.effect(
      "C#",
      (context) =>
        verifyCases(context, {
          commands: [
            ["mcs", "-out:main.exe", "verify.cs", "main.cs"],
            ["mono", "main.exe"]
          ],
          files: {
            "verify.cs": block("csharp"),
            "main.cs": `using System;
using System.Linq;
using System.Text;

static class Program
{
    static void Main()
    {
        for (var line = Console.ReadLine(); line != null; line = Console.ReadLine())
        {
            var parts = line.Split(' ').Select(Convert.FromBase64String).ToArray();
            var text = parts.Select(Encoding.UTF8.GetString).ToArray();
            Console.WriteLine(WebhookVerifier.Verify(text[0], text[1], text[2], parts[3]));
        }
    }
}
`
          }
        }),
      120_000
    )

    it.effect("PHP", (context) =>
      verifyCases(context, {
        commands: [["php", "main.php"]],
        files: {
          "main.php": `<?php
${block("php")}
while (($line = fgets(STDIN)) !== false) {
    [$secret, $id, $signature, $body] = array_map('base64_decode', explode(' ', rtrim($line, "\\n")));
    echo verify($secret, $id, $signature, $body) ? 'true' : 'false', "\\n";
}
`
        }
      })
    )
  }
)
