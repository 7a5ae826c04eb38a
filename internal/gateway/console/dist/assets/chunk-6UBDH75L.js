/* Licences of the libraries in this file: NOTICE.txt */
function o(t,n,c){let e=document.createElement("a");e.href=URL.createObjectURL(new Blob([c],{type:n})),e.download=t.replace(/[\\/:*?"<>|\p{C}]+/gu," ").trim().slice(0,100)||"lathe",e.click(),setTimeout(()=>URL.revokeObjectURL(e.href),1e4)}export{o as a};
