/* Licences of the libraries in this file: NOTICE.txt */
import{b as a,c as b,d as c}from"./chunk-DVQZYA6Y.js";import"./chunk-3GWUOFJB.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
