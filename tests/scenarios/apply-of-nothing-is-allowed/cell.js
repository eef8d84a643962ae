return (await z.apply([])).receipts.length;
