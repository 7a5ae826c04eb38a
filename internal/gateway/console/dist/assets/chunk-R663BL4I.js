/* Licences of the libraries in this file: NOTICE.txt */
import{h as a,i}from"./chunk-G2TCPSGF.js";function o(e="(min-width: 75rem)"){let[s,c]=a(()=>matchMedia(e).matches);return i(()=>{let t=matchMedia(e),n=()=>c(t.matches);return n(),t.addEventListener("change",n),()=>t.removeEventListener("change",n)},[e]),s}export{o as a};
