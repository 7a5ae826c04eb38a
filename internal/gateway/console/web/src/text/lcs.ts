// A longest common subsequence.

// pairs aligns two lists: the indices of equal elements together, -1 beside an element of one list alone, in the order of
// both. Time and memory are the product of the lengths.
export function pairs(a: readonly string[], b: readonly string[]): [number, number][] {
  const width = b.length + 1, length = new Uint16Array((a.length + 1) * width), out: [number, number][] = [];
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) {
    length[i * width + j] = a[i] === b[j] ? length[(i + 1) * width + j + 1]! + 1 : Math.max(length[(i + 1) * width + j]!, length[i * width + j + 1]!);
  }
  let i = 0, j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) out.push([i++, j++]);
    else if (length[(i + 1) * width + j]! >= length[i * width + j + 1]!) out.push([i++, -1]);
    else out.push([-1, j++]);
  }
  while (i < a.length) out.push([i++, -1]);
  while (j < b.length) out.push([-1, j++]);
  return out;
}
