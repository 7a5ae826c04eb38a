import assert from "node:assert/strict";
import test from "node:test";
import { entries } from "../src/text/jsontext.js";

test("entries are the texts of members and elements", () => {
  assert.deepEqual(entries('{"a":12345678901234567890,"b":{"c":[1,2]},"a":"x,y:{"}'), { array: false, of: [["a", "12345678901234567890"], ["b", '{"c":[1,2]}'], ["a", '"x,y:{"']] });
  assert.deepEqual(entries('[1, [2,3], {"a":4}, "b:c"]'), { array: true, of: [[undefined, "1"], [undefined, "[2,3]"], [undefined, '{"a":4}'], [undefined, '"b:c"']] });
  assert.deepEqual(entries("{}"), { array: false, of: [] });
  for (const other of ["12", '"text"', "null", "no json", '{"a":']) assert.equal(entries(other), undefined);
});
