/* Licences of the libraries in this file: NOTICE.txt */
import{n as a,o as b,p as c,q as d}from"./chunk-4HLIF7LS.js";import"./chunk-3MJ4CFTN.js";import"./chunk-GXWSIOA4.js";import"./chunk-3GWUOFJB.js";import"./chunk-OOJM4CTU.js";export{c as Measure,b as NoResults,d as default,a as outcome};
