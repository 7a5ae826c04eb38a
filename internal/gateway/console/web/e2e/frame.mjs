// The frame on an address that leads to no screen.

export default async function ({ page, base, check, axe, shot }) {
  await page.goto(`${base}settings`);
  await page.waitForSelector("#health.up");
  check("its files load", await page.evaluate(() => document.documentElement.dataset.ready), "yes");
  await axe("no screen");
  await shot();
}
