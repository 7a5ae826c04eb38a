// A file that the browser saves.

export function download(name: string, type: string, text: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name.replace(/[\\/:*?"<>|\p{C}]+/gu, " ").trim().slice(0, 100) || "lathe";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
