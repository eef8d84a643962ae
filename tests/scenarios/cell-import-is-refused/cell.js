const fs = await import('fs'); return typeof fs;
