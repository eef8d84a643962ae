console.log('seen', { a: 1 }); console.error('too');
