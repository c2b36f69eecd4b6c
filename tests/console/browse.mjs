// Opens pages in Chromium, light and dark, and prints what axe-core finds, what was logged and what ran, as JSON.
// node browse.mjs '{"chromium", "base", "pages": {"name": "/path"}, "shots", "full": [], "login": {"path", "token"} | null, "question"}'
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import path from "node:path";

const wanted = JSON.parse(process.argv[2]);
const require = createRequire(path.join(process.env.CONSOLE_TOOLS, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({ executablePath: wanted.chromium, args: ["--no-sandbox", "--disable-gpu"] });
const told = [];
const asked = [];
try {
  for (const colorScheme of ["light", "dark"]) {
    // axe-core is put into the page from outside, which its content policy forbids to everybody else: `strict` looks without it.
    const context = await browser.newContext({ colorScheme, bypassCSP: true, viewport: { width: 1200, height: 900 } });
    const strict = await browser.newContext({ colorScheme, viewport: { width: 360, height: 640 } });
    if (wanted.login) {
      for (const each of [context, strict]) {
        const page = await each.newPage();
        await page.goto(wanted.base + wanted.login.path);
        await page.fill("#token", wanted.login.token);
        await page.keyboard.press("Enter");
        await page.waitForURL("**/console/");
        await page.close();
      }
    }
    for (const [name, where] of Object.entries(wanted.pages)) {
      const page = await context.newPage();
      await page.goto(wanted.base + where);
      await page.screenshot({ path: path.join(wanted.shots, `${name}-${colorScheme}.png`), fullPage: wanted.full.includes(name) });
      await page.evaluate(axe);
      const result = await page.evaluate(() => window.axe.run(document));
      await page.close();
      const narrow = await strict.newPage();
      const said = [];
      narrow.on("console", (message) => said.push(message.text()));
      narrow.on("pageerror", (error) => said.push(String(error)));
      narrow.on("dialog", (dialog) => { said.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
      const foreign = [];
      narrow.on("request", (request) => { if (!request.url().startsWith(wanted.base)) foreign.push(request.url()); });
      await narrow.goto(wanted.base + where);
      const wide = await narrow.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      const styled = await narrow.evaluate(() => getComputedStyle(document.querySelector("header")).display === "flex");
      await narrow.keyboard.press("Tab");
      const first = await narrow.evaluate(() => document.activeElement.textContent);
      await narrow.screenshot({ path: path.join(wanted.shots, `${name}-${colorScheme}-narrow.png`) });
      await narrow.close();
      const violations = result.violations.map((v) => ({ id: v.id, impact: v.impact, targets: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)) }));
      told.push({ name, colorScheme, violations, said, foreign, wide, styled, first, passes: result.passes.length });
    }
    if (wanted.question) {
      const page = await strict.newPage();
      const said = [];
      page.on("console", (message) => said.push(message.text()));
      page.on("dialog", (dialog) => { said.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
      await page.goto(`${wanted.base}/console/search`);
      await page.focus("#question");
      await page.keyboard.insertText(wanted.question);
      await page.keyboard.press("Enter");
      await page.waitForSelector("ol.evidence", { state: "attached" });
      await page.screenshot({ path: path.join(wanted.shots, `answer-${colorScheme}-narrow.png`) });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      await page.evaluate(() => document.querySelector("main p a").click());
      await page.waitForURL("**/console/receipts/*");
      const receipt = await page.evaluate(() => document.querySelector("h1").textContent);
      if (wanted.login) {
        await page.evaluate(() => document.querySelector("header form button").focus());
        await page.keyboard.press("Enter");
        await page.waitForURL("**/console/login");
      }
      await page.close();
      asked.push({ colorScheme, said, wide, receipt });
    }
    await context.close();
    await strict.close();
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify({ told, asked }));
