import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";

const folder = new URL("../src/styles/", import.meta.url);

test("styles have no colour, size of type or radius beside the tokens", () => {
  for (const name of readdirSync(folder).filter((n) => n !== "tokens.css")) {
    const css = readFileSync(new URL(name, folder), "utf8");
    assert.deepEqual(css.match(/#[0-9a-f]{3,8}\b|\b(?:rgb|hsl|oklch)\(|font(?:-size)?: (?!1rem)[\d.]+rem|border-radius: \.[\d.]+rem/g), null, name);
  }
});

test("the page of the design has the value of each token", () => {
  const page = readFileSync(new URL("../../../../../docs/internals/console-design.md", import.meta.url), "utf8"), tokens = readFileSync(new URL("tokens.css", folder), "utf8");
  for (const [, name, light, dark] of tokens.matchAll(/(--[\w-]+): (?:light-dark\((#\w+), (#\w+)\))?/g)) {
    if (name === "--side") continue;
    const row = page.split("\n").find((l) => l.includes("`" + name + "`")) ?? "";
    assert.ok(row, `${name} is not described`);
    if (light) assert.ok(row.includes(light) && row.includes(dark), `${name} is ${light}, ${dark}: ${row}`);
  }
});
