// The form of a tool's schema: what it begins with, and the exact JSON that it sends.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { from, initial, limitsOf, problem, Raw, shape, takesNone, text } from "../src/schema.ts";

const schemas = JSON.parse(readFileSync(new URL("../testdata/schemas.json", import.meta.url), "utf8"));
const compact = (json) => json.replace(/\n\s*/g, "").replace(/": /g, "\":");

test("there are 30 schemas or more, each once", () => {
  assert.ok(schemas.length >= 30);
  assert.equal(new Set(schemas.map((s) => s.name)).size, schemas.length);
});

for (const { name, schema, initial: want } of schemas) {
  test(`the form of ${name} begins with ${want}`, () => {
    const value = initial(schema, schema);
    assert.equal(compact(text(value)), want);
    assert.equal(problem(value), "");
  });
}

for (const { name, schema, first } of schemas.filter((s) => s.first)) {
  test(`a number of ${name} in a list begins with ${first}`, () => {
    assert.equal(text(initial(Object.values(schema.properties)[0], schema)), first);
  });
}

test("numbers keep their digits", () => {
  assert.equal(text({ n: new Raw("12345678901234567890"), list: [new Raw("1.10")] }), '{\n  "n": 12345678901234567890,\n  "list": [\n    1.10\n  ]\n}');
  assert.equal(text(from(JSON.parse('{"a":[1,null,true,"x"]}'))), '{\n  "a": [\n    1,\n    null,\n    true,\n    "x"\n  ]\n}');
});

test("what cannot be sent is named with its path", () => {
  assert.equal(problem({ a: { b: [new Raw("1"), new Raw("1x")] } }), "a/b/1 is not a number");
  assert.equal(problem({ a: new Raw("{") }), "a is not valid JSON");
  assert.equal(problem(new Raw("-")), "The value is not a number");
  assert.equal(problem({ n: new Raw("abc", true) }), "n is not a number");
  assert.equal(problem({ a: new Raw('{"b": 1}') }), "");
});

test("a schema without an end has a form with one", () => {
  const endless = { type: "object", properties: { next: { $ref: "#" } }, required: ["next"] };
  assert.ok(text(initial(endless, endless)).length < 1000);
  const circle = { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } };
  assert.equal(shape(circle, circle).kind, "any");
  const away = { $ref: "https://evil.test/schema.json" };
  assert.equal(shape(away, away).kind, "any");
});

test("limits are said", () => {
  assert.equal(limitsOf({ type: "integer", minimum: 1, maximum: 5 }), "1 to 5");
  assert.equal(limitsOf({ type: "number", exclusiveMinimum: 0 }), "more than 0");
  assert.equal(limitsOf({ type: "integer", exclusiveMaximum: 9, multipleOf: 2 }), "less than 9, a multiple of 2");
  assert.equal(limitsOf({ type: "string", minLength: 2, maxLength: 4, pattern: "^a" }), "2 to 4 characters, pattern ^a");
  assert.equal(limitsOf({ type: "array", minItems: 1 }), "1 or more items");
  assert.equal(limitsOf({ type: "string", maxLength: 3, format: "date" }), "at most 3 characters, format date");
  assert.equal(limitsOf({}), "");
});

test("a schema that names no arguments", () => {
  const object = { type: "object" };
  for (const none of [object, { ...object, properties: {} }, { ...object, properties: {}, additionalProperties: false }, { properties: {} }, { $ref: "#/$defs/a", $defs: { a: object } }]) assert.equal(takesNone(none), true, JSON.stringify(none));
  for (const some of [{}, { ...object, additionalProperties: true }, { ...object, additionalProperties: { type: "string" } }, { ...object, patternProperties: { a: {} } }, { ...object, properties: { a: {} } }, { type: "array" }]) assert.equal(takesNone(some), false, JSON.stringify(some));
});
