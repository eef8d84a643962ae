const [mistyped, right] = await Promise.all(['scr/**/*.rs', 'src/**/*.rs'].map((path) => z.find('missing', { path })));
return [mistyped.absence, mistyped.coverage.skipped, right.absence];
